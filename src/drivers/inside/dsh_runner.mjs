// SPDX-License-Identifier: MIT
//
// One turn of dsh for a program: the headless profile takes its task as an
// argument, cannot resume and prints the last text only. This plugin takes its
// place: the prompt comes by stdin, the session's events go out as JSON lines.
//
// environment: SANDBOX_AGENT_SESSION  id of a new session
//              SANDBOX_AGENT_RESUME   id of the one to go on with; empty: none
//              SANDBOX_AGENT_MODEL    the model's name; empty: dsh's own
import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const name = "sandbox-agent-runner";
export const inject = ["agentDefaultModel", "agents", "sessions", "sessionPersistence"];

const TOLD = new Set([
	"turn/start", "assistant/chunk", "assistant/message", "tool/call", "tool/result",
	"llm/retry", "turn/end",
]);
// Pieces of arguments come again, whole, with the call.
const CHUNKS = new Set(["block-start", "text-delta", "reasoning-delta"]);

function tell(event) {
	process.stdout.write(JSON.stringify(event) + "\n");
}

function isTold(event) {
	return TOLD.has(event.type) &&
		(event.type !== "assistant/chunk" || CHUNKS.has(event.data?.chunk?.type));
}

async function readPrompt() {
	const pieces = [];
	for await (const piece of process.stdin)
		pieces.push(piece);
	return Buffer.concat(pieces).toString("utf8");
}

// dsh's own modules are found from where dsh is, not from where this file is.
async function fromDsh(module) {
	const require = createRequire(realpathSync(process.argv[1]));
	return import(pathToFileURL(require.resolve(module)).href);
}

async function openAgent(ctx) {
	const { installModelSelection } = await fromDsh("@deepseek-ai/dsh-agent");
	const { SANDBOX_AGENT_SESSION, SANDBOX_AGENT_RESUME, SANDBOX_AGENT_MODEL } = process.env;
	const current = { ...ctx.get("agentDefaultModel").currentSelection() };
	if (SANDBOX_AGENT_MODEL)
		current.model = SANDBOX_AGENT_MODEL;
	const common = {
		agentOptions: { provider: current.provider, model: current.model },
		setup: (agent) => {
			installModelSelection(agent, { current, assembled: undefined });
		},
	};
	const agents = ctx.get("agents");
	if (SANDBOX_AGENT_RESUME)
		return agents.resume({ resumeSessionId: SANDBOX_AGENT_RESUME, ...common });
	return agents.create({
		sessionId: SANDBOX_AGENT_SESSION || `session-${randomUUID()}`,
		meta: { cwd: process.cwd() },
		...common,
	});
}

async function turn(ctx) {
	const prompt = await readPrompt();
	await ctx.get("loader")?.await();
	const { agent } = await openAgent(ctx);
	await agent.whenIdle();
	const id = agent.session.id;
	let reason;
	tell({ type: "session", id });
	// The other sessions that it sees are subagents'.
	ctx.on("session/event", (session, event) => {
		if (session?.id !== id || !event)
			return;
		if (event.type === "turn/end")
			reason = event.data?.reason?.kind;
		if (isTold(event))
			tell(event);
	});
	agent.followup({
		role: "user", id: randomUUID(), source: { kind: "user" },
		content: [{ type: "text", text: prompt }],
	});
	await agent.whenIdle();
	await ctx.get("sessions").flush(agent.session);
	return reason === "completed" ? 0 : 1;
}

export function apply(ctx) {
	// dsh's way out waits for ever after a session that could not be opened (0.1.0-rc.8).
	const exit = (status) => {
		setTimeout(() => process.exit(status), 2000).unref();
		ctx.get("appExit")(status);
	};
	turn(ctx).then(exit, (error) => {
		process.stderr.write(`dsh: ${error?.message ?? error}\n`);
		exit(1);
	});
}
