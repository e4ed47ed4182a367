# SPDX-License-Identifier: MIT
# How tests, fuzz targets and benchmarks are built and run. The library is
# built a second time with AddressSanitizer and UBSan for every test.

SB       := build/asan
UNIT_SRC := $(wildcard tests/unit/*_test.c)
WIRE_SRC := $(wildcard tests/wire/*_test.c)
INT_SRC  := $(wildcard tests/integration/*_test.c)
E2E_SRC  := $(wildcard tests/e2e/*_test.c)
FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.c)
HELPERS  := $(wildcard tests/support/*.c)

TEST_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) -Wno-conversion -fPIE -Iinclude -Isrc -Itests $(PKG_CFLAGS)
ASAN        := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
TEST_LIBS   = $(PKG_LIBS) -lcmocka -lpthread -lm

UNIT := $(UNIT_SRC:tests/%.c=build/asan/tests/%)
WIRE := $(WIRE_SRC:tests/%.c=build/asan/tests/%)
INT  := $(INT_SRC:tests/%.c=build/asan/tests/%)
E2E  := $(E2E_SRC:tests/%.c=build/asan/tests/%)
FUZZ := $(FUZZ_SRC:tests/%.c=build/asan/tests/%)
UNIT_PLAIN := $(UNIT_SRC:tests/%.c=build/plain/tests/%)

GUEST_PURE := $(filter-out src/guest/main.c,$(GUEST_SRC))

.PHONY: FORCE
FORCE:

# The sanitized library and program, by the same rules in another folder.
build/asan/libsandbox-agent.a build/asan/sandbox-agent: FORCE
	@$(MAKE) --no-print-directory B=build/asan SAN=1 $@.really

.PHONY: build/asan/libsandbox-agent.a.really build/asan/sandbox-agent.really
build/asan/libsandbox-agent.a.really: $(if $(SAN),$(B)/libsandbox-agent.a)
build/asan/sandbox-agent.really: $(if $(SAN),$(B)/sandbox-agent)
