# A stand-in libcuda, a made-up transport, and the program that calls both.
CUDA_B := $(B)/cuda
CUDA_HDRS := $(wildcard tests/cuda/*.h)
CUDA_FLAGS := -D_GNU_SOURCE -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -pthread

.PHONY: cuda
cuda: $(CUDA_B)/cuda_app
targets: cuda

$(CUDA_B)/libcuda.so.1: tests/cuda/libcuda.c tests/cuda/stream.c $(CUDA_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CUDA_FLAGS) -fPIC -fvisibility=hidden -shared -Wl,-soname,libcuda.so.1 $(filter %.c,$^) -o $@
$(CUDA_B)/libroomtx.so: tests/cuda/roomtx.c $(CUDA_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CUDA_FLAGS) -fPIC -shared $< -o $@
$(CUDA_B)/cuda_app: tests/cuda/cuda_app.c tests/cuda/cuda_calls.c tests/cuda/steps.c $(CUDA_B)/libcuda.so.1 $(CUDA_B)/libroomtx.so $(CUDA_HDRS)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CUDA_FLAGS) $(filter %.c,$^) -L$(CUDA_B) -l:libcuda.so.1 -lroomtx -Wl,-rpath,'$$ORIGIN' -o $@
