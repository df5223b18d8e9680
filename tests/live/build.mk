# Programs that the live tests watch, and the cmocka program that drives attach on the real kernel.
LIVE_B := $(B)/live
LIVE_HDRS := $(wildcard tests/live/*.h tests/live/targets/*.h)

.PHONY: targets
targets: $(LIVE_B)/attach_smoke $(LIVE_B)/attach_messages $(LIVE_B)/attach_process $(LIVE_B)/smoke_target $(LIVE_B)/libsmoke.so $(LIVE_B)/libsmokexx.so
	@:

$(LIVE_B)/libsmoke.so: tests/live/targets/smoke_lib.c $(LIVE_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(LIVE_B)/libsmokexx.so: tests/live/targets/smoke_cxx.cc
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) -std=c++17 -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(LIVE_B)/smoke_target: tests/live/targets/smoke_target.c $(LIVE_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Werror -pthread $< -ldl -o $@
$(LIVE_B)/attach_%: tests/live/attach_%.c tests/live/attach_rig.c $(LIVE_HDRS) $(B)/libsilentpin.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) -Itests/live $(CFLAGS_OWN) $(CFLAGS) $< tests/live/attach_rig.c \
		$(B)/libsilentpin.a $(LIBS) -lcmocka -o $@
