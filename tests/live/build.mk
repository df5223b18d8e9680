# Programs that the live tests watch, and the cmocka program that drives attach on the real kernel.
LIVE_B := $(B)/live
LIVE_HDRS := $(wildcard tests/live/*.h tests/live/targets/*.h)

.PHONY: targets
targets: $(LIVE_B)/attach_smoke $(LIVE_B)/attach_messages $(LIVE_B)/attach_process $(LIVE_B)/smoke_target $(LIVE_B)/libsmoke.so $(LIVE_B)/libsmokexx.so $(LIVE_B)/attach_calls $(LIVE_B)/attach_each $(LIVE_B)/attach_returns $(LIVE_B)/attach_plans \
	$(LIVE_B)/libsmokecalls.so
	@:

$(LIVE_B)/libsmoke.so: tests/live/targets/smoke_lib.c $(LIVE_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(LIVE_B)/libsmokexx.so: tests/live/targets/smoke_cxx.cc
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) -std=c++17 -O2 -fPIC -Wall -Wextra -Werror -shared $< -o $@
$(LIVE_B)/libsmokecalls.so: tests/live/targets/calls_lib.cc
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(NODE_CXX) -std=c++17 -O2 -fPIC -fno-optimize-sibling-calls -Wall -Wextra -Werror -shared $< -o $@
targets: $(LIVE_B)/libc.musl-smoke.so
$(LIVE_B)/libc.musl-smoke.so: tests/live/targets/around_libc.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -fPIC -Wall -Wextra -Werror -shared -Wl,-Bsymbolic $< -o $@
$(LIVE_B)/smoke_target: tests/live/targets/smoke_target.c $(LIVE_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Werror -pthread $< -ldl -o $@
targets: $(LIVE_B)/refuse
$(LIVE_B)/refuse: tests/live/targets/refuse.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Werror $< -o $@
$(LIVE_B)/attach_%: tests/live/attach_%.c tests/live/attach_rig.c $(LIVE_HDRS) $(B)/libsilentpin.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) -Itests/live $(CFLAGS_OWN) $(CFLAGS) $< tests/live/attach_rig.c \
		$(B)/libsilentpin.a $(LIBS) -lcmocka -o $@

targets: $(LIVE_B)/pydump $(LIVE_B)/pysnap $(LIVE_B)/sock_smoke
$(LIVE_B)/pydump $(LIVE_B)/pysnap $(LIVE_B)/sock_smoke: $(LIVE_B)/%: tests/live/%.c $(B)/libsilentpin.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_OWN) $(CFLAGS_OWN) $(CFLAGS) $< $(B)/libsilentpin.a $(LIBS) -o $@

# An interpreter that is not the python3 program: from the shared libpython, and stripped with libpython linked in
# (no dynamic symbol of it is left); and programs that claim to be a version that cannot be read.
LIVE_PYCONFIG ?= /usr/bin/python3-config
LIVE_PYFLAGS = $(shell $(LIVE_PYCONFIG) --includes) -O2 -Wall -Wextra -Werror
LIVE_FAKES := $(LIVE_B)/py_fake_3.99 $(LIVE_B)/py_fake_3.14 $(LIVE_B)/py_fake_3.13t

targets: $(LIVE_B)/py_embed $(LIVE_B)/py_embed_static $(LIVE_FAKES) $(LIVE_B)/libpyrefuse.so

$(LIVE_B)/py_embed: tests/live/targets/py_embed.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIVE_PYFLAGS) $< $$($(LIVE_PYCONFIG) --ldflags --embed) -o $@
$(LIVE_B)/py_embed_static: tests/live/targets/py_embed.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIVE_PYFLAGS) $< $$($(LIVE_PYCONFIG) --ldflags --embed | sed 's/-lpython/-l:libpython/;s/\(libpython[0-9.]*\)/\1.a/') \
		-lz -lexpat -lutil -no-pie -s -o $@
$(LIVE_B)/py_fake_3.%: tests/live/targets/py_fake.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Werror -rdynamic -s -DFAKE_VERSION=$$(printf 0x03%02x00f0 $(*:t=)) \
		-DFAKE_FREE_THREADED=$(if $(findstring t,$*),1,0) $< -o $@
$(LIVE_B)/libpyrefuse.so: tests/live/targets/py_refuse.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O2 -fPIC -Wall -Wextra -Werror -shared $< -ldl -o $@

# What speaks on sockets: calls one by one, with libc's functions and with none; ZMQ without a symbol.
LIVE_PEER_FLAGS := -D_GNU_SOURCE -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -pthread
# Debian's libzmq.a: all else that it needs has shared libraries only.
LIVE_ZMQ_STATIC := -Wl,-Bstatic -lzmq -Wl,-Bdynamic -lsodium -lpgm -lnorm -lgssapi_krb5 -lbsd -lstdc++

targets: $(LIVE_B)/sock_peer $(LIVE_B)/sock_peer_static $(LIVE_B)/zmq_peer

$(LIVE_B)/sock_peer $(LIVE_B)/sock_peer_static: $(LIVE_B)/sock_peer%: tests/live/peers/sock_peer.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIVE_PEER_FLAGS) $(if $*,-static) $< -o $@
$(LIVE_B)/zmq_peer: tests/live/peers/zmq_peer.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIVE_PEER_FLAGS) -s $< $(LIVE_ZMQ_STATIC) -o $@

targets: $(LIVE_B)/sock_cancel
$(LIVE_B)/sock_cancel: tests/live/targets/sock_cancel.c
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -Wno-unused-result -Werror -pthread $< -o $@
