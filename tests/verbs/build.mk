# Stand-in providers of verbs, and the program that posts to them; its transport and its command loop are those of tests/cuda.
VERBS_B := $(B)/verbs
VERBS_HDRS := $(wildcard tests/verbs/*.h) tests/cuda/roomtx.h tests/cuda/steps.h
VERBS_FLAGS := -D_GNU_SOURCE -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wno-unused-parameter -Werror -pthread

.PHONY: verbs
verbs: $(VERBS_B)/verbs_app $(VERBS_B)/libstandin-rdmav0.so $(VERBS_B)/libhidden-rdmav0.so
targets: verbs

$(VERBS_B)/slots: tests/verbs/slots.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(VERBS_FLAGS) $< -libverbs -o $@
$(VERBS_B)/slots.h: $(VERBS_B)/slots
	$(Q)$< > $@
# Stripped, as the providers of a distribution are: nothing but the table of operations names the data path.
$(VERBS_B)/lib%-rdmav0.so: tests/verbs/provider.c $(VERBS_B)/slots.h $(VERBS_HDRS)
	$(call say,TEST,$@)
	$(Q)$(CC) $(VERBS_FLAGS) $(if $(filter hidden,$*),-DHIDDEN) -I$(VERBS_B) -fPIC -fvisibility=hidden -shared -s $< -libverbs -o $@
$(VERBS_B)/libroomtx.so: tests/cuda/roomtx.c tests/cuda/roomtx.h
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(VERBS_FLAGS) -fPIC -shared $< -o $@
$(VERBS_B)/verbs_app: tests/verbs/verbs_app.c tests/cuda/steps.c $(VERBS_B)/libroomtx.so $(VERBS_HDRS)
	$(call say,TEST,$@)
	$(Q)$(CC) $(VERBS_FLAGS) -Itests/cuda $(filter %.c,$^) -L$(VERBS_B) -lroomtx -libverbs -ldl -Wl,-rpath,'$$ORIGIN' -o $@
