# The decoders under libFuzzer: build/fuzz/fuzz_*, run by `make test` and, for longer, `make fuzz`.
# Included by the main Makefile. clang only: gcc has no libFuzzer.
FUZZ_B := $(B)/fuzz
FUZZ_SRCS := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ := $(FUZZ_SRCS:tests/fuzz/%.c=$(FUZZ_B)/%)
FUZZ_SECONDS ?= 600
FUZZ_CFLAGS := -std=gnu11 $(WARN) -fno-strict-aliasing -pthread -O2 -g -fno-omit-frame-pointer \
	-fno-sanitize-recover=all
FUZZ_SAN := address,undefined

.PHONY: fuzzers
fuzzers: $(FUZZ)
	@:

$(FUZZ_B)/%: tests/fuzz/%.c tests/fuzz/build.mk
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_OWN) $(FUZZ_CFLAGS) -fsanitize=fuzzer,$(FUZZ_SAN) -MMD -MP $< \
		$(filter %.o,$^) $(LIBS) -o $@
-include $(FUZZ:=.d)

.PHONY: fuzz
fuzz: fuzzers
	@/usr/bin/python3 tests/run.py --build $(B) --only fuzz --fuzz-seconds $(FUZZ_SECONDS)

# Fuzz from the seeds and what is kept, and keep the fewest inputs that reach as much.
.PHONY: fuzz-corpus
fuzz-corpus: fuzzers
	@tests/fuzz/keep.sh $(FUZZ_B) $(FUZZ_SECONDS)

# Collect and what it stands on, for fuzz_sockets: instrumented as the target is.
FUZZ_LIB_SRCS := $(wildcard user/util/*.c user/event/*.c user/profile/*.c user/collect/*.c)
FUZZ_OBJS := $(FUZZ_LIB_SRCS:user/%.c=$(FUZZ_B)/obj/%.o)
$(FUZZ_B)/obj/%.o: user/%.c
	$(call say,CC,$< (fuzz))
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_OWN) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -MMD -MP -c $< -o $@
-include $(FUZZ_OBJS:.o=.d)
$(FUZZ_B)/fuzz_sockets: $(FUZZ_OBJS)

# What reads libraries, for fuzz_elf.
FUZZ_ELF_OBJS := $(patsubst %,$(FUZZ_B)/obj/attach/%.o,elf flow flow_decode func image insn insn_arm64 insn_x86 \
	optable reloc sock_sites unwind)
-include $(FUZZ_ELF_OBJS:.o=.d)
$(FUZZ_B)/fuzz_elf: $(FUZZ_ELF_OBJS)
