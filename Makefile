# silentpin: build, test, install. `make` alone builds build/silentpin; `make V=1` shows each command.
# Targets: all deps demo test fuzz bench install lint format clean dist
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := $(shell sed -n 's/^.define SP_VERSION "\(.*\)"/\1/p' user/cli/version.h)
PREFIX ?= /usr/local
DESTDIR ?=
B := build
DIST := dist
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
HOST_ARCH := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

WARN := -Wall -Wextra -Wshadow -Wformat=2 -Wtype-limits -Wno-unused-parameter -Werror
CPPFLAGS_OWN := -D_GNU_SOURCE -Iuser -Ibpf -I$(B)
CFLAGS ?= -O2 -g
CFLAGS_OWN := -std=gnu11 $(WARN) -fno-strict-aliasing -pthread
LIBS := -lbpf -lelf -lz -lyaml -lsqlite3 -ljansson -lcapstone -lcap -lm

SRCS := $(wildcard user/*/*.c)
CLI_ONLY := $(wildcard user/cli/*.c)
OBJS := $(SRCS:user/%.c=$(B)/obj/%.o)
LIB_OBJS := $(filter-out $(CLI_ONLY:user/%.c=$(B)/obj/%.o),$(OBJS))
SKEL := $(B)/silentpin.skel.h

# $(call say,CC,FILE) begins a recipe and names what it makes; $(Q) hides the command. V=1 shows all.
Q := $(if $(filter 1,$(V)),,@)
say = @printf '  %-7s %s\n' '$(1)' '$(2)'

.PHONY: all
all: $(B)/silentpin $(B)/bpf/silentpin.x86.bpf.o $(B)/bpf/silentpin.arm64.bpf.o
	@:

# ---- the kernel side, for both architectures in every build ------------------------------------
BPF_SRC := bpf/silentpin.bpf.c
BPF_DEPS := $(wildcard bpf/*.h) $(wildcard vmlinux/*.h)
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror -D__BPF__ -Ibpf -Ivmlinux \
	-ffile-prefix-map=$(CURDIR)=.

$(B)/bpf/silentpin.%.bpf.o: $(BPF_SRC) $(BPF_DEPS) Makefile
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$* -c $< -o $@
	@llvm-strip -g $@ 2>/dev/null || llvm-strip-14 -g $@

$(SKEL): $(B)/bpf/silentpin.$(HOST_ARCH).bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name silentpin_bpf > $@

# ---- the user side -----------------------------------------------------------------------------
$(B)/obj/%.o: user/%.c | $(SKEL)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CPPFLAGS) $(CFLAGS_OWN) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/silentpin: $(OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread $^ $(LIBS) -o $@

-include $(OBJS:.o=.d)

# ---- unit tests: each tests/unit/test_X.c is a program; plain and under ASan+UBSan --------------
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT := $(UNIT_SRCS:tests/unit/%.c=$(B)/unit/%)
UNIT_SAN := $(UNIT_SRCS:tests/unit/%.c=$(B)/unit-san/%)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_OBJS := $(LIB_OBJS:$(B)/obj/%=$(B)/obj-san/%)

$(B)/obj-san/%.o: user/%.c | $(SKEL)
	$(call say,CC,$< (sanitized))
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CPPFLAGS) $(CFLAGS_OWN) -O1 -g $(SAN) -MMD -MP -c $< -o $@
-include $(SAN_OBJS:.o=.d)

$(B)/libsilentpin.a: $(LIB_OBJS)
	$(call say,AR,$@)
	@rm -f $@; ar rcs $@ $^
$(B)/libsilentpin-san.a: $(SAN_OBJS)
	$(call say,AR,$@)
	@rm -f $@; ar rcs $@ $^
$(B)/unit/%: tests/unit/%.c $(B)/libsilentpin.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) -MMD -MP $< $(B)/libsilentpin.a $(LIBS) -lcmocka -o $@
$(B)/unit-san/%: tests/unit/%.c $(B)/libsilentpin-san.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) -O1 -g $(SAN) -MMD -MP $< $(B)/libsilentpin-san.a $(LIBS) -lcmocka -o $@
-include $(UNIT:=.d) $(UNIT_SAN:=.d)

.PHONY: unit
unit: $(UNIT) $(UNIT_SAN)
	@:

.PHONY: clean
clean:
	rm -rf $(B) $(DIST)

.PHONY: format
format:
	clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cc' | grep -v '^vmlinux/')

# ---- packages, tests, style --------------------------------------------------------------------
.PHONY: deps
deps:
	@scripts/deps all

.PHONY: root
root:
	@[ "$$(id -u)" = 0 ] || { echo "make: $(MAKECMDGOALS): tracing needs root: sudo make $(MAKECMDGOALS)" >&2; exit 1; }

.PHONY: tracefs
tracefs:
	@mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true

include $(wildcard tests/*/build.mk)

.PHONY: test
test: root deps tracefs
	@$(MAKE) --no-print-directory -j2 all unit fuzzers node targets
	@python=/usr/bin/python3; $$python tests/run.py --build $(B)

.PHONY: demo
demo: root tracefs
	@scripts/deps test
	@$(MAKE) --no-print-directory -j2 all node
	@/usr/bin/python3 tests/node/demo.py $(B)

.PHONY: bench
bench: root tracefs
	@scripts/deps bench
	@$(MAKE) --no-print-directory -j2 all node benches
	@/usr/bin/python3 tests/bench/bench.py --build $(B)

C_FILES := $(shell git ls-files -co --exclude-standard '*.c' '*.h' '*.cc' 2>/dev/null | grep -v '^vmlinux/')
.PHONY: lint
lint: $(SKEL)
	clang-format --dry-run -Werror $(C_FILES)
	cppcheck -q --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
		--suppress=missingIncludeSystem '-DHASH_ITER(hh,head,el,tmp)=for(el=head;el;)' -Iuser -Ibpf $(SRCS)
	printf '%s\n' $(SRCS) | xargs -P 2 -n 6 sh -c \
		'clang-tidy --quiet "$$@" -- $(CPPFLAGS_OWN) -std=gnu11 2>$(B)/tidy.log' _

# ---- install, and one static program for nodes without compiler or network ----------------------
DOCS := README.md LICENSE $(wildcard docs/*.md)
INST := $(DESTDIR)$(PREFIX)

# The program finds its probes.yaml from its own place (../share/silentpin), so that any PREFIX will do.
.PHONY: install
install: all
	$(call say,INSTALL,$(INST))
	$(Q)install -D -m 755 -t $(INST)/bin $(B)/silentpin
	$(Q)install -D -m 644 -t $(INST)/share/silentpin probes.yaml
	$(Q)install -D -m 644 -t $(INST)/share/man/man1 docs/silentpin.1
	$(Q)install -D -m 644 -t $(INST)/share/doc/silentpin $(DOCS)

# SQLite's loader of extensions makes ld warn about dlopen: nothing here calls it. No name is looked up
# (NSS) either, so that the program needs no libc on the node. ld's warnings are shown when it fails.
$(B)/silentpin-static: $(OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -static -pthread $^ $(LIBS) -o $@ 2> $@.log || { cat $@.log; exit 1; }
	$(Q)strip $@

DIST_NAME := silentpin-$(VERSION)-linux-$(shell uname -m)
.PHONY: dist
dist: $(B)/silentpin-static
	$(call say,DIST,$(DIST)/$(DIST_NAME).tar.gz)
	$(Q)rm -rf $(B)/dist
	$(Q)install -D -m 755 $< $(B)/dist/$(DIST_NAME)/silentpin
	$(Q)install -D -m 644 -t $(B)/dist/$(DIST_NAME) probes.yaml docs/silentpin.1 README.md LICENSE
	$(Q)install -D -m 644 -t $(B)/dist/$(DIST_NAME)/docs docs/*.md
	$(Q)cp -r LICENSES $(B)/dist/$(DIST_NAME)/
	$(Q)mkdir -p $(DIST)
	$(Q)tar -C $(B)/dist --owner=0 --group=0 --sort=name -czf $(DIST)/$(DIST_NAME).tar.gz $(DIST_NAME)
	@echo "Copy it to the node, unpack it there, and run ./silentpin doctor in its folder."
