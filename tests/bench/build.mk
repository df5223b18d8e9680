# What `make bench` measures with. Included by the main Makefile.
BENCH_B := $(B)/bench

.PHONY: benches
benches: $(BENCH_B)/target $(BENCH_B)/null $(BENCH_B)/null.bpf.o

$(BENCH_B)/libbench.so: tests/bench/calls.c
	@mkdir -p $(@D)
	$(CC) -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(BENCH_B)/target: tests/bench/target.c tests/bench/calls.h $(BENCH_B)/libbench.so
	$(CC) -O2 -Wall -Wextra -Werror $< -L$(BENCH_B) -lbench -Wl,-rpath,'$$ORIGIN' -o $@
$(BENCH_B)/null.bpf.o: tests/bench/null.bpf.c
	@mkdir -p $(@D)
	$(CLANG) -O2 -target bpf -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror -c $< -o $@
$(BENCH_B)/null: tests/bench/null.c $(B)/libsilentpin.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) $< $(B)/libsilentpin.a $(LIBS) -o $@
