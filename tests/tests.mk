# SPDX-License-Identifier: MIT
# How tests, fuzz targets and benchmarks are built and run. Everything is built
# a second time with AddressSanitizer and UBSan, in build/asan, for the tests;
# unit tests a third time without, for valgrind.

UNIT := $(patsubst tests/%.c,%,$(wildcard tests/unit/*_test.c))
WIRE := $(patsubst tests/%.c,%,$(wildcard tests/wire/*_test.c))
INT  := $(patsubst tests/%.c,%,$(wildcard tests/integration/*_test.c))
E2E  := $(patsubst tests/%.c,%,$(wildcard tests/e2e/*_test.c))
FAULTS := $(patsubst tests/%.c,%,$(wildcard tests/faults/*_test.c))
ALLOC := $(patsubst tests/%.c,%,$(wildcard tests/alloc/*_test.c))
FUZZ := $(patsubst tests/%.c,%,$(wildcard tests/fuzz/*_fuzz.c))

GUEST_OBJ   := $(patsubst %.c,$(B)/%.o,$(filter-out src/guest/main.c,$(GUEST_SRC)))
SUPPORT_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c))
CLI_PARTS   := $(filter-out %/main.o,$(CLI_OBJ))
TEST_CFLAGS  = $(CFLAGS_ALL) -Itests -Wno-conversion -Wno-null-dereference
TEST_LIBS    = $(PKG_LIBS) -lcmocka -lpthread -lm

# What a test links beside the library: the guest's and the program's parts for
# their own tests, the support code for all.
parts = $(if $(findstring /guest_,$@),$(GUEST_OBJ)) $(if $(findstring /cli_,$@),$(CLI_PARTS)) \
        $(SUPPORT_OBJ)

$(B)/tests/support/%.o: tests/support/%.c Makefile tests/tests.mk
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/integration/channel_test: build/guest/guest-older build/guest/guest-newer

$(B)/tests/%_test: $(B)/tests/%_test.o $(B)/libsandbox-agent.a $(GUEST_OBJ) $(CLI_PARTS) $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(parts) $(B)/libsandbox-agent.a $(TEST_LIBS)

# The library with its allocations (jansson's too) led to tests/support/alloc_fail.c;
# the unit and wire tests once more with it, as build/…/alloc/….
$(B)/libsandbox-agent-alloc.a: $(B)/libsandbox-agent.a
	$(call say,OBJCOPY,$@)
	$(Q)objcopy $(foreach f,malloc calloc realloc strdup strndup,--redefine-sym $(f)=alloc_fail_$(f)) $< $@

$(B)/alloc/%_test: $(B)/tests/%_test.o $(B)/libsandbox-agent-alloc.a $(GUEST_OBJ) $(CLI_PARTS) $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $< $(parts) $(B)/libsandbox-agent-alloc.a $(TEST_LIBS)

# A fuzz target that replays its corpus; `make fuzz` links libFuzzer instead.
$(B)/tests/fuzz/%_fuzz: $(B)/tests/fuzz/%_fuzz.o $(B)/tests/fuzz/replay.o $(B)/libsandbox-agent.a \
                        $(GUEST_OBJ) $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(B)/tests/fuzz/replay.o $(GUEST_OBJ) $(SUPPORT_OBJ) \
	        $(B)/libsandbox-agent.a $(TEST_LIBS)

$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/libsandbox-agent.a $(SUPPORT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(SUPPORT_OBJ) $(B)/libsandbox-agent.a $(TEST_LIBS)

# What the documentation shows; public headers only.
EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
$(B)/examples/%.o: examples/%.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(OPT) $(WARN) $(HARD) -Iinclude $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/examples/%: $(B)/examples/%.o $(B)/libsandbox-agent.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(B)/libsandbox-agent.a $(PKG_LIBS) -lpthread -lm

-include $(GUEST_OBJ:.o=.d) $(wildcard $(B)/tests/*/*.d) $(wildcard $(B)/examples/*.d)
.SECONDARY:

.PHONY: tests unit-tests library
tests: all $(addprefix $(B)/tests/,$(UNIT) $(WIRE) $(INT) $(E2E) $(FUZZ)) $(EXAMPLES)
unit-tests: $(addprefix $(B)/tests/,$(UNIT))
library: $(B)/libsandbox-agent.a $(B)/sandbox-agent

# ---- running ----

JOBS := -j$(shell nproc)
asan  = $(MAKE) --no-print-directory $(JOBS) B=build/asan SAN=1

.PHONY: check
check: ## all tests, on a real engine; installs and starts what they need
	$(Q)ci/bootstrap
	$(Q)ci/check

.PHONY: check-build
check-build: ## build everything: plain, with sanitizers
	$(Q)$(MAKE) --no-print-directory $(JOBS) all unit-tests
	$(Q)$(asan) tests

.PHONY: check-unit check-wire check-integration check-e2e check-valgrind check-fuzz
check-unit: check-build ## unit tests under ASan and UBSan
	$(Q)ci/run-tests $(addprefix build/asan/tests/,$(UNIT))

.PHONY: check-install
check-install: all ## install into a folder, and build and read what is there
	$(Q)ci/check-install

check-wire: check-build ## against a fake engine that lies
	$(Q)ci/run-tests $(addprefix build/asan/tests/,$(WIRE))

check-valgrind: check-build ## unit tests under valgrind
	$(Q)ci/run-tests --valgrind $(addprefix build/tests/,$(UNIT))

check-fuzz: check-build ## every fuzz target over its corpus
	$(Q)ci/run-tests --corpus $(addprefix build/asan/tests/,$(FUZZ))

check-integration: check-build ## on a real engine
	$(Q)ci/run-tests --slow $(addprefix build/asan/tests/,$(INT))

check-e2e: check-build images ## the real CLIs with the scripted model
	$(Q)AGENTS='$(AGENTS)' ci/e2e $(addprefix build/asan/tests/,$(E2E))

.PHONY: e2e
e2e: check-e2e ## the same for some of them: make e2e AGENTS="claude codex"

.PHONY: check-alloc alloc-tests
check-alloc: check-build ## every unit and wire test with allocations that fail
	$(Q)$(asan) alloc-tests
	$(Q)ci/run-tests --slow $(addprefix build/asan/,$(patsubst alloc/%,alloc/alloc/%,$(ALLOC)))
	$(Q)ci/alloc $(addprefix build/asan/alloc/,$(UNIT) $(WIRE))
alloc-tests: $(addprefix $(B)/alloc/,$(ALLOC) $(UNIT) $(WIRE))

.PHONY: check-faults
check-faults: check-build ## kills, restarts, full disks, a lot at once (10 minutes)
	$(Q)$(asan) $(addprefix build/asan/tests/,$(FAULTS))
	$(Q)ci/faults $(addprefix build/asan/tests/,$(FAULTS))

.PHONY: check-engines
check-engines: check-build ## the same on Docker 26, Podman 4.3 and 5.4 as well (root)
	$(Q)ci/engines check $(addprefix build/asan/tests/,$(INT))

.PHONY: check-clang check-analyzer
check-clang: ## clang without a warning
	$(Q)$(MAKE) --no-print-directory $(JOBS) B=build/clang CC=clang library

# gcc 12 loses track of what is stored into an array that was just grown and calls
# it leaked; leaks are LeakSanitizer's and valgrind's to find.
check-analyzer: ## gcc -fanalyzer without a word
	$(Q)$(MAKE) --no-print-directory $(JOBS) B=build/analyzer \
	        CFLAGS='-fanalyzer -Wno-analyzer-malloc-leak' library

.PHONY: images
images: all ## build the pinned images that are missing
	$(Q)ci/build-images

.PHONY: package
package: ## the .deb and the source archive, in build/package
	$(Q)ci/build-package

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: ## fuzz every target for FUZZ_SECONDS each
	$(Q)$(MAKE) --no-print-directory $(JOBS) B=build/fuzz CC=clang SAN=fuzz fuzz-binaries
	$(Q)for t in $(notdir $(FUZZ)); do mkdir -p build/fuzz/corpus/$$t; \
	        echo "fuzz $$t"; build/fuzz/tests/fuzz/$$t.lf -max_total_time=$(FUZZ_SECONDS) \
	        -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
	        build/fuzz/corpus/$$t tests/fuzz/corpus/$${t%_fuzz} || exit 1; done

.PHONY: fuzz-binaries
fuzz-binaries: $(addprefix $(B)/tests/,$(addsuffix .lf,$(FUZZ)))
$(B)/tests/fuzz/%.lf: $(B)/tests/fuzz/%.o $(B)/libsandbox-agent.a $(GUEST_OBJ) $(SUPPORT_OBJ)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $< $(GUEST_OBJ) $(SUPPORT_OBJ) $(B)/libsandbox-agent.a $(TEST_LIBS)

.PHONY: bench
bench: all images ## compare with what a user would use instead; build/bench.json
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/*_bench.c))
	$(Q)ci/bench
