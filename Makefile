# SPDX-License-Identifier: MIT
# Builds, tests and installs sandbox-agent. `make help` lists the targets.

B       ?= build
CC      ?= gcc
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
V       ?=
SAN     ?=
VERSION := 0.1.0
# Counts up with every change that a program which is there would not survive
# (include/sandbox-agent/sandbox-agent.h says what such a change is).
SOVERSION := 0

.DEFAULT_GOAL := all
MAKEFLAGS     += --no-builtin-rules
SHELL         := /bin/bash

PACKAGES := jansson libarchive openssl libmicrohttpd libcurl libnghttp2 zlib
# Deferred (=), so that `make demo` on a bare machine can first install them.
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES))
# libarchive is linked in: of all that its shared library loads (an XML parser,
# ICU, six compressors) nothing is needed for tar, and loading it takes longer
# than most commands.
PKG_LIBS   = -Wl,-Bstatic -larchive -ljansson -Wl,-Bdynamic \
             $(shell pkg-config --libs $(filter-out libarchive jansson,$(PACKAGES)))

WARN := -Wall -Wextra -Wformat=2 -Wshadow -Wvla -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wnull-dereference -Wimplicit-fallthrough -Werror
# For the shared library and the program alike: with what is hidden, and no symbol of ours
# replaced by another's, it costs the program nothing.
HARD := -fstack-protector-strong -fPIC -fno-semantic-interposition
ifeq ($(SAN),)
OPT  := -O2 -g -D_FORTIFY_SOURCE=3
else
OPT  := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all \
        $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer-no-link)
endif
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -DSBA_VERSION='"$(VERSION)"' $(OPT) $(WARN) $(HARD) \
             -fvisibility=hidden -Iinclude -Isrc -I$(B)/gen $(PKG_CFLAGS) $(CFLAGS)
LINK = $(CC) $(OPT) -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
Q    := $(if $(V),,@)
say   = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

LIB_SRC   := $(filter-out src/cli/% src/guest/%,$(wildcard src/*/*.c))
CLI_SRC   := $(wildcard src/cli/*.c)
GUEST_SRC := $(wildcard src/guest/*.c)
LIB_OBJ   := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ   := $(CLI_SRC:%.c=$(B)/%.o)
EMBEDDED  := versions.json $(sort $(wildcard images/*/*))
# What drivers place in a sandbox: x/pi_provider.mjs is sba_inside_pi_provider.
INSIDE    := $(wildcard src/drivers/inside/*)
inside     = $(foreach f,$(INSIDE),sba_inside_$(basename $(notdir $f))=$f)

.PHONY: all
all: $(B)/sandbox-agent $(if $(SAN),,$(B)/libsandbox-agent.so)

# ---- the guest: a static program for each architecture, embedded into the library ----

NATIVE         := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)
TRIPLET_amd64  := x86_64-linux-gnu
TRIPLET_arm64  := aarch64-linux-gnu
guest_cc        = $(if $(filter $(NATIVE),$(1)),gcc,$(TRIPLET_$(1))-gcc)
# The other architecture's is built where its compiler and library are there (ci/bootstrap).
guest_can       = $(and $(shell command -v $(call guest_cc,$(1))),$(wildcard /usr/lib/$(TRIPLET_$(1))/libnghttp2.a))
GUEST_ARCHS    := $(foreach a,amd64 arm64,$(if $(filter $(NATIVE),$(a))$(call guest_can,$(a)),$(a)))
GUESTS         := $(GUEST_ARCHS:%=build/guest/guest-%)
GUEST          := build/guest/guest-$(NATIVE)
GUEST_CFLAGS   := -std=c11 -D_GNU_SOURCE -O2 -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
                  $(WARN) -Isrc
GUEST_VERSION   = $(VERSION)
# For the tests: guests of the past and of the future.
build/guest/guest-older: GUEST_VERSION = 0.0.1
build/guest/guest-newer: GUEST_VERSION = 99.0.0
build/guest/guest-older: GUEST_PROTOCOL := -DSBA_PROTOCOL_VERSION=1
build/guest/guest-newer: GUEST_PROTOCOL := -DSBA_PROTOCOL_VERSION=99
# The guest is the same bytes whatever the library is built with: its hash names the
# sidecar's image. It also says its hash, which is written into it last.
$(GUESTS) build/guest/guest-older build/guest/guest-newer: build/guest/guest-%: $(GUEST_SRC) \
                $(wildcard src/guest/*.h) src/channel/protocol.h Makefile
	$(call say,GUEST,$@)
	@mkdir -p $(@D)
	$(Q)$(call guest_cc,$(if $(filter %64,$*),$*,$(NATIVE))) $(GUEST_CFLAGS) $(GUEST_PROTOCOL) \
	        -DSBA_VERSION='"$(GUEST_VERSION)"' -static -s -Wl,--build-id=none -o $@.tmp \
	        $(GUEST_SRC) -lnghttp2
	$(Q)hash=$$(sha256sum $@.tmp | cut -c1-12) && printf '%s' "$$hash" > $@.hash && \
	        LC_ALL=C sed -i "s/@guest-hash@/$$hash/" $@.tmp && mv $@.tmp $@

# The one that runs here, by the name that the tests know.
build/guest/guest: $(GUEST)
	$(Q)ln -sf $(<F) $@

# ---- the library and the program ----

$(B)/src/%.o: src/%.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/embedded.S: $(EMBEDDED) $(INSIDE) $(GUESTS) build/guest/guest ci/embed
	@mkdir -p $(@D)
	$(Q)ci/embed $(foreach g,$(GUESTS),$(notdir $(g))=$(g) $(notdir $(g)).hash=$(g).hash) \
	        $(EMBEDDED) $(inside) > $@.tmp && mv $@.tmp $@

$(B)/embedded.o: $(B)/embedded.S
	$(call say,EMBED,$@)
	$(Q)$(CC) -c -o $@ $<

$(B)/libsandbox-agent.a: $(LIB_OBJ) $(B)/embedded.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Loads what the program has linked in: an archive is not made for a shared library.
$(B)/libsandbox-agent.so: $(LIB_OBJ) $(B)/embedded.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(OPT) -shared -Wl,-soname,libsandbox-agent.so.$(SOVERSION) \
	        -Wl,-z,relro,-z,now,-z,defs -Wl,-Bsymbolic-functions -Wl,--as-needed $(LDFLAGS) \
	        -o $@ $^ $(shell pkg-config --libs $(PACKAGES)) -lpthread -lm

$(B)/sandbox-agent: $(CLI_OBJ) $(B)/libsandbox-agent.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(CLI_OBJ) $(B)/libsandbox-agent.a $(PKG_LIBS) -lpthread -lm

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

include install.mk
include tests/tests.mk

# ---- for people ----

.PHONY: demo
demo: ## a real opencode and a real claude at work, each in its own container
	$(Q)ci/demo

.PHONY: lint
lint: ## formatting, banned functions, dependency law, spelling, scripts
	$(Q)ci/lint

.PHONY: docs
docs: all ## write anew what docs/ has from the table of settings and from examples/
	$(B)/sandbox-agent config doc markdown > docs/config.md
	ci/library-doc

.PHONY: symbols
symbols: ## write tests/abi/symbols.txt anew from the public headers
	ci/symbols > tests/abi/symbols.txt

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@printf '%-12s %s\n' make 'build the program: build/sandbox-agent'
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "%-12s %s\n", "make " $$1, $$2 }' \
	        $(MAKEFILE_LIST) | sed 's/^make \(\S*\) */make \1\t/' | expand -t 20
