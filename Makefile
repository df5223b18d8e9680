# silentpin: build, test, install. `make` alone builds build/silentpin.
# Targets: all deps demo test bench install lint format clean dist
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := $(shell sed -n 's/^.define SP_VERSION "\(.*\)"/\1/p' user/cli/version.h)
PREFIX ?= /usr/local
DESTDIR ?=
B := build
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
HOST_ARCH := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

WARN := -Wall -Wextra -Wshadow -Wformat=2 -Wtype-limits -Wno-unused-parameter -Werror
CPPFLAGS_OWN := -D_GNU_SOURCE -Iuser -Ibpf -I$(B) -DSP_PREFIX='"$(PREFIX)"'
CFLAGS ?= -O2 -g
CFLAGS_OWN := -std=gnu11 $(WARN) -fno-strict-aliasing -pthread
LIBS := -lbpf -lelf -lz -lyaml -lsqlite3 -ljansson -lcapstone -lcap -lm

SRCS := $(wildcard user/*/*.c)
CLI_ONLY := $(wildcard user/cli/*.c)
OBJS := $(SRCS:user/%.c=$(B)/obj/%.o)
LIB_OBJS := $(filter-out $(CLI_ONLY:user/%.c=$(B)/obj/%.o),$(OBJS))
SKEL := $(B)/silentpin.skel.h

.PHONY: all
all: $(B)/silentpin $(B)/bpf/silentpin.x86.bpf.o $(B)/bpf/silentpin.arm64.bpf.o

# ---- the kernel side, for both architectures in every build ------------------------------------
BPF_SRC := bpf/silentpin.bpf.c
BPF_DEPS := $(wildcard bpf/*.h) $(wildcard vmlinux/*.h)
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror -D__BPF__ -Ibpf -Ivmlinux

$(B)/bpf/silentpin.%.bpf.o: $(BPF_SRC) $(BPF_DEPS)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$* -c $< -o $@
	@llvm-strip -g $@ 2>/dev/null || llvm-strip-14 -g $@

$(SKEL): $(B)/bpf/silentpin.$(HOST_ARCH).bpf.o
	$(BPFTOOL) gen skeleton $< name silentpin_bpf > $@

# ---- the user side -----------------------------------------------------------------------------
$(B)/obj/%.o: user/%.c | $(SKEL)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_OWN) $(CPPFLAGS) $(CFLAGS_OWN) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/silentpin: $(OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread $^ $(LIBS) -o $@

-include $(OBJS:.o=.d)

# ---- unit tests: each tests/unit/test_X.c is a program; plain and under ASan+UBSan --------------
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT := $(UNIT_SRCS:tests/unit/%.c=$(B)/unit/%)
UNIT_SAN := $(UNIT_SRCS:tests/unit/%.c=$(B)/unit-san/%)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_OBJS := $(LIB_OBJS:$(B)/obj/%=$(B)/obj-san/%)

$(B)/obj-san/%.o: user/%.c | $(SKEL)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_OWN) $(CPPFLAGS) $(CFLAGS_OWN) -O1 -g $(SAN) -MMD -MP -c $< -o $@
-include $(SAN_OBJS:.o=.d)

$(B)/libsilentpin.a: $(LIB_OBJS)
	@rm -f $@; ar rcs $@ $^
$(B)/libsilentpin-san.a: $(SAN_OBJS)
	@rm -f $@; ar rcs $@ $^
$(B)/unit/%: tests/unit/%.c $(B)/libsilentpin.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) -MMD -MP $< $(B)/libsilentpin.a $(LIBS) -lcmocka -o $@
$(B)/unit-san/%: tests/unit/%.c $(B)/libsilentpin-san.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) -O1 -g $(SAN) -MMD -MP $< $(B)/libsilentpin-san.a $(LIBS) -lcmocka -o $@
-include $(UNIT:=.d) $(UNIT_SAN:=.d)

.PHONY: unit
unit: $(UNIT) $(UNIT_SAN)

.PHONY: clean
clean:
	rm -rf $(B) dist

.PHONY: format
format:
	clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cc' | grep -v '^vmlinux/')

# ---- packages, tests, style --------------------------------------------------------------------
.PHONY: deps
deps:
	@scripts/deps all

.PHONY: tracefs
tracefs:
	@mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true

include tests/node/build.mk tests/live/build.mk

.PHONY: test
test: deps tracefs
	@$(MAKE) --no-print-directory -j2 all unit node targets
	@python=/usr/bin/python3; $$python tests/run.py --build $(B)

.PHONY: demo
demo: tracefs
	@scripts/deps test
	@$(MAKE) --no-print-directory -j2 all node
	@/usr/bin/python3 tests/node/demo.py $(B)

.PHONY: bench
bench: tracefs
	@scripts/deps bench
	@$(MAKE) --no-print-directory -j2 all node targets
	@/usr/bin/python3 tests/bench/bench.py --build $(B)

C_FILES := $(shell git ls-files -co --exclude-standard '*.c' '*.h' '*.cc' 2>/dev/null | grep -v '^vmlinux/')
.PHONY: lint
lint: $(SKEL)
	clang-format --dry-run -Werror $(C_FILES)
	cppcheck -q --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
		--suppress=missingIncludeSystem '-DHASH_ITER(hh,head,el,tmp)=for(el=head;el;)' -Iuser -Ibpf $(SRCS)
	printf '%s\n' $(SRCS) | xargs -P 2 -n 6 clang-tidy --quiet \
		--extra-arg=-Wno-unknown-warning-option -- $(CPPFLAGS_OWN) -std=gnu11

# ---- install, and one static program for nodes without compiler or network ----------------------
.PHONY: install
install: all
	install -D -m 755 $(B)/silentpin $(DESTDIR)$(PREFIX)/bin/silentpin
	install -D -m 644 probes.yaml $(DESTDIR)$(PREFIX)/share/silentpin/probes.yaml
	install -D -m 644 docs/silentpin.1 $(DESTDIR)$(PREFIX)/share/man/man1/silentpin.1
	for f in README.md docs/*.md LICENSE; do \
		install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/doc/silentpin/$$(basename $$f); done

# Static glibc and SQLite warn about dlopen, which we never call (no extensions, no NSS).
DIST_NAME := silentpin-$(VERSION)-linux-$(shell uname -m)
$(B)/silentpin-static: $(OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) -static -pthread $^ $(LIBS) -o $@ 2> $(B)/static.log || { cat $(B)/static.log; exit 1; }
	@strip $@

.PHONY: dist
dist: dist/$(DIST_NAME).tar.gz
dist/$(DIST_NAME).tar.gz: $(B)/silentpin-static probes.yaml docs/silentpin.1 README.md LICENSE
	@rm -rf $(B)/dist && mkdir -p $(B)/dist/$(DIST_NAME) dist
	cp $(B)/silentpin-static $(B)/dist/$(DIST_NAME)/silentpin
	cp probes.yaml docs/silentpin.1 README.md LICENSE $(B)/dist/$(DIST_NAME)/
	tar -C $(B)/dist --owner=0 --group=0 --sort=name -czf $@ $(DIST_NAME)
	@echo "$@: copy it to the node, unpack it, run ./silentpin doctor"
