# What `make bench` measures with. Included by the main Makefile.
BENCH_B := $(B)/bench

.PHONY: benches
benches: $(BENCH_B)/target $(BENCH_B)/null $(BENCH_B)/null.bpf.o $(BENCH_B)/model $(B)/live/sock_peer $(B)/live/zmq_peer $(B)/cuda/cuda_app verbs

$(BENCH_B)/libbench.so: tests/bench/calls.c
	$(call say,BENCH,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(BENCH_B)/target: tests/bench/target.c tests/bench/calls.h $(BENCH_B)/libbench.so
	$(call say,BENCH,$@)
	$(Q)$(CC) -O2 -Wall -Wextra -Werror $< -L$(BENCH_B) -lbench -Wl,-rpath,'$$ORIGIN' -o $@
$(BENCH_B)/null.bpf.o: tests/bench/null.bpf.c
	$(call say,BENCH,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -O2 -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror -c $< -o $@
$(BENCH_B)/null: tests/bench/null.c $(B)/libsilentpin.a
	$(call say,BENCH,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) $< $(B)/libsilentpin.a $(LIBS) -o $@
$(BENCH_B)/model: tests/bench/model.c $(B)/libsilentpin.a
	$(call say,BENCH,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) $< $(B)/libsilentpin.a $(LIBS) -o $@
