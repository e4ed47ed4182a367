# SPDX-License-Identifier: MIT
# What is installed, and what is only made to be installed: manual pages, completion,
# schema, sandbox-agent.pc. Nothing is built as root that `make` has built before.

SHARE := $(DESTDIR)$(PREFIX)/share
SOFILE = libsandbox-agent.so.$(VERSION)
SONAME = libsandbox-agent.so.$(SOVERSION)

# What a program links besides the static library.
PC_PRIVATE := -ljansson -larchive -lssl -lcrypto -lnghttp2 -lz -lpthread -lm

.PHONY: $(B)/sandbox-agent.pc
$(B)/sandbox-agent.pc:
	@mkdir -p $(@D)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' \
	        'includedir=$${prefix}/include' '' 'Name: sandbox-agent' \
	        'Description: LLM agent CLIs in disposable containers' 'Version: $(VERSION)' \
	        'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lsandbox-agent' \
	        'Libs.private: $(PC_PRIVATE)' > $@

# Section 1 is made from the tables of commands and options, 3 from the public headers,
# 5 from the table of settings.
$(B)/man/made: $(B)/sandbox-agent ci/man3 $(wildcard include/sandbox-agent/*.h)
	$(call say,MAN,$(@D))
	@rm -rf $(@D) && mkdir -p $(@D)/man1 $(@D)/man3 $(@D)/man5
	$(Q)$(B)/sandbox-agent help --man > $(@D)/man1/sandbox-agent.1
	$(Q)$(B)/sandbox-agent -q help | while read -r command; do \
	        $(B)/sandbox-agent help --man $$command \
	        > "$(@D)/man1/sandbox-agent-$${command// /-}.1" || exit 1; done
	$(Q)ci/man3 $(VERSION) $(@D)/man3
	$(Q)$(B)/sandbox-agent config doc man > $(@D)/man5/sandbox-agent-config.5
	$(Q)touch $@

.PHONY: man
man: $(B)/man/made ## the manual pages: build/man

.PHONY: install
install: all man $(B)/sandbox-agent.pc ## install under DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/sandbox-agent \
	        $(DESTDIR)$(LIBDIR)/pkgconfig $(SHARE)/sandbox-agent \
	        $(SHARE)/man/man1 $(SHARE)/man/man3 $(SHARE)/man/man5 \
	        $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
	        $(SHARE)/fish/vendor_completions.d
	install -m 755 $(B)/sandbox-agent $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(B)/libsandbox-agent.so $(DESTDIR)$(LIBDIR)/$(SOFILE)
	ln -sf $(SOFILE) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libsandbox-agent.so
	install -m 644 $(B)/libsandbox-agent.a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(B)/sandbox-agent.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 include/sandbox-agent/*.h $(DESTDIR)$(PREFIX)/include/sandbox-agent/
	install -m 644 versions.json $(SHARE)/sandbox-agent/
	for s in 1 3 5; do install -m 644 $(B)/man/man$$s/* $(SHARE)/man/man$$s/ || exit 1; done
	$(B)/sandbox-agent config schema > $(SHARE)/sandbox-agent/config.schema.json
	$(B)/sandbox-agent completion bash > $(SHARE)/bash-completion/completions/sandbox-agent
	$(B)/sandbox-agent completion zsh > $(SHARE)/zsh/site-functions/_sandbox-agent
	$(B)/sandbox-agent completion fish > $(SHARE)/fish/vendor_completions.d/sandbox-agent.fish
	$(if $(DESTDIR),,ldconfig 2>/dev/null || true)

.PHONY: uninstall
uninstall: ## remove what install has put there
	rm -rf $(DESTDIR)$(PREFIX)/include/sandbox-agent $(SHARE)/sandbox-agent
	rm -f $(DESTDIR)$(PREFIX)/bin/sandbox-agent $(DESTDIR)$(LIBDIR)/libsandbox-agent.* \
	        $(DESTDIR)$(LIBDIR)/pkgconfig/sandbox-agent.pc \
	        $(SHARE)/man/man1/sandbox-agent*.1 $(SHARE)/man/man5/sandbox-agent-config.5 \
	        $(SHARE)/man/man3/sandbox-agent*.3 $(SHARE)/man/man3/sba_*.3 \
	        $(SHARE)/bash-completion/completions/sandbox-agent \
	        $(SHARE)/zsh/site-functions/_sandbox-agent \
	        $(SHARE)/fish/vendor_completions.d/sandbox-agent.fish
