# SPDX-License-Identifier: MIT
# From lines of samples to figures with goals: medians, their ratio, and
# whether the goal is met. Used by ci/bench with `jq -s`.

def quantile(q): sort | .[((length - 1) * q) | round];
def rounded: if . >= 100 then round elif . >= 10 then . * 10 | round / 10 else . * 100 | round / 100 end;
def series($name; all): all | map(select(.name == $name)) | first // error("no samples of \($name)");

# Times and rates are compared by their medians, memory by its largest sample.
def value: if .unit == "KiB" then .samples | max else .samples | quantile(0.5) end;

def met($ratio; $ours):
  if has("max_ratio") then $ratio <= .max_ratio
  elif has("below_ratio") then $ratio < .below_ratio
  elif has("min_ratio") then $ratio >= .min_ratio
  elif has("min") then $ours >= .min
  elif has("max") then $ours <= .max
  elif has("below") then $ours < .below
  else null end;

def goal($unit):
  if has("max_ratio") then "<= \(.max_ratio) x"
  elif has("below_ratio") then "< \(.below_ratio) x"
  elif has("min_ratio") then ">= \(.min_ratio) x"
  elif has("min") then ">= \(.min) \($unit)"
  elif has("max") then "<= \(.max) \($unit)"
  elif has("below") then "< \(.below) \($unit)"
  else null end;

def figure(all):
  series(.ours; all) as $ours
  | (if .theirs then series(.theirs; all) | value else null end) as $theirs
  | ($ours | value) as $value
  | (if $theirs then $value / $theirs else null end) as $ratio
  | {
      work, alternative, unit: $ours.unit,
      ours: ($value | rounded),
      quartiles: [$ours.samples | quantile(0.25), quantile(0.75) | rounded],
      theirs: (if $theirs then $theirs | rounded else null end),
      ratio: (if $ratio then $ratio | rounded else null end),
      goal: goal($ours.unit),
      met: met($ratio; $value)
    };

. as $all
| {
    machine: { cpus: ($cpus | tonumber), kernel: $kernel, engine: $engine, load: ($load | tonumber) },
    figures: ([
      { work: "recorded streams to events, slowest CLI", ours: "parse.slowest", min: 40 },
      { work: "exec of true, kept handle", ours: "exec.ours",
        alternative: "the three requests, raw", theirs: "exec.raw", max_ratio: 0.1 },
      { work: "exec of true, kept handle", ours: "exec.ours",
        alternative: "docker exec", theirs: "exec.docker" },
      { work: "exec of true, whole process", ours: "exec_program.ours",
        alternative: "docker exec", theirs: "exec_program.docker", max_ratio: 0.7 },
      { work: "memory, 1 GiB of a command's output", ours: "memory_output.ours", below: 10240 },
      { work: "exec of true, one after another", ours: "exec_row.ours",
        alternative: "the three requests, raw", theirs: "exec_row.raw", max_ratio: 0.1 },
      { work: "exec's first byte, kept handle", ours: "exec_first.ours", max: 2 },
      { work: "exec of true, as a named user", ours: "exec.engine",
        alternative: "the three requests, raw", theirs: "exec.raw", max_ratio: 1.15 },
      { work: "exec of true, as a named user", ours: "exec.engine",
        alternative: "docker exec", theirs: "exec.docker", below_ratio: 0.7 },
      { work: "  one after another", ours: "exec_row.engine",
        alternative: "the three requests, raw", theirs: "exec_row.raw" },
      { work: "  one after another", ours: "exec_row.engine",
        alternative: "docker exec", theirs: "exec_row.docker" },
      { work: "a command's output", ours: "stdout.ours",
        alternative: "the engine's exec", theirs: "stdout.engine", min_ratio: 0.9 },
      { work: "a command's input", ours: "stdin.ours",
        alternative: "the engine's exec", theirs: "stdin.engine", min_ratio: 0.6 },
      { work: "sandbox ready, first byte said", ours: "ready.ours",
        alternative: "bare create, start, exec", theirs: "ready.bare", max_ratio: 1.5 },
      { work: "sandbox ready from the pool", ours: "ready.pool",
        alternative: "bare create, start, exec", theirs: "ready.bare", max_ratio: 0.15 },
      { work: "sandbox removed", ours: "rm.ours",
        alternative: "two bare ones removed", theirs: "rm.bare", max_ratio: 1.1 },
      { work: "model call, above a direct one", ours: "model.above", max: 1 },
      { work: "  by channel and relay", ours: "model.ours",
        alternative: "direct, on loopback", theirs: "model.direct" },
      { work: "  by channel alone", ours: "model.tunnel",
        alternative: "direct, on loopback", theirs: "model.direct" },
      { work: "an answer through the relay", ours: "relay.ours",
        alternative: "from the upstream", theirs: "relay.direct", min: 200 },
      { work: "many sandboxes started", ours: "load.ours",
        alternative: "twice as many bare ones", theirs: "load.bare", max_ratio: 1.1 },
      { work: "  of them failed", ours: "load.failed", max: 0 },
      # 40 MiB for a hundred; of these 8 MiB are the allocator's, however few they are
      { work: "  anonymous memory then", ours: "load.memory",
        below: (8192 + ($sandboxes | tonumber) * 327.68 | floor) },
      { work: "run, without the CLI's own time", ours: "run.ours",
        alternative: "bare create, start, remove", theirs: "run.bare", max_ratio: 2 },
      { work: "  engine found and asked", ours: "run.open.ours" },
      { work: "  sandbox made", ours: "run.create.ours",
        alternative: "bare create, start", theirs: "run.create.bare" },
      { work: "  agent opened, model listens", ours: "run.agent.ours" },
      { work: "  first command, true", ours: "run.exec.ours" },
      { work: "  all removed", ours: "run.remove.ours",
        alternative: "bare remove", theirs: "run.remove.bare" },
      { work: "a turn, without the CLI's own time", ours: "turn.program", max: 60 },
      { work: "  by a kept handle", ours: "turn.kept", max: 60 },
      { work: "an agent ready to be talked with", ours: "agent_ready.ours",
        alternative: "bare create, start, exec", theirs: "agent_ready.bare", max_ratio: 1.7 },
      { work: "five agents at once, a turn of 12 s each", ours: "five.ours",
        alternative: "the slowest of them alone", theirs: "five.slowest", max_ratio: 1.3 },
      { work: "first snapshot, 50,000 files", ours: "snapshot.first",
        alternative: "find, xargs -P sha256sum", theirs: "snapshot.hand", max_ratio: 1.2 },
      { work: "  a second one, nothing changed", ours: "snapshot.again",
        alternative: "the first", theirs: "snapshot.first", max_ratio: 0.1 },
      { work: "a turn, ten of 50,000 files changed", ours: "changes.ten", max: 150 },
      { work: "a thousand changes taken home", ours: "apply.ours",
        alternative: "git apply", theirs: "apply.git", max_ratio: 1.5 },
      { work: "three children, 200 MB changed", ours: "fork.ours",
        alternative: "download, 3 starts, 3 uploads", theirs: "fork.hand", max_ratio: 1.2 },
      { work: "one file of 512 MB out, to a tmpfs", ours: "files_out_big.ours",
        alternative: "docker cp", theirs: "files_out_big.docker", max_ratio: 0.8 },
      { work: "  its tar, thrown away", ours: "files_out_big.raw",
        alternative: "docker cp", theirs: "files_out_big.docker" },
      { work: "  by a kept handle", ours: "files_out_big.kept",
        alternative: "its tar, thrown away", theirs: "files_out_big.raw", max_ratio: 1.1 },
      { work: "10,000 files of 4 KiB out, to a tmpfs", ours: "files_out_many.ours",
        alternative: "docker cp", theirs: "files_out_many.docker", max_ratio: 0.65 },
      { work: "  by a kept handle", ours: "files_out_many.kept",
        alternative: "their tar, thrown away", theirs: "files_out_many.raw", max_ratio: 1.1 },
      { work: "one file of 256 MB in", ours: "files_in_big.ours",
        alternative: "docker cp", theirs: "files_in_big.docker", max_ratio: 0.8 },
      { work: "  its tar sent, ready made", ours: "files_in_big.raw",
        alternative: "docker cp", theirs: "files_in_big.docker" },
      { work: "10,000 files of 4 KiB in", ours: "files_in_many.ours",
        alternative: "docker cp", theirs: "files_in_many.docker", max_ratio: 1 },
      { work: "  their tar sent, ready made", ours: "files_in_many.raw",
        alternative: "docker cp", theirs: "files_in_many.docker" },
      { work: "5 bytes read, kept handle", ours: "files_read.ours",
        alternative: "docker exec cat", theirs: "files_read.docker", max_ratio: 0.1 },
      { work: "5 bytes written, kept handle", ours: "files_write.ours",
        alternative: "docker exec cat", theirs: "files_read.docker", max_ratio: 0.1 },
      { work: "a turn of 20,000 events, recorded", ours: "audit.with",
        alternative: "the same, not recorded", theirs: "audit.without", max_ratio: 1.05 },
      { work: "  anonymous memory, above it", ours: "audit.memory", max: 4096 },
      { work: "anonymous memory, most in a copy", ours: "files_memory.ours", below: 10240 },
      { work: "anonymous memory, most in a turn", ours: "memory.ours", max: 8192 },
      { work: "sandbox-agent version", ours: "version.ours",
        alternative: "docker --version", theirs: "version.docker", below: 10 },
      { work: "sandbox-agent config show", ours: "config_show.ours", below: 15 },
      { work: "sandbox-agent image tag", ours: "image_tag.ours", below: 15 }
    ] | map(figure($all))),
    series: $all
  }
