# SPDX-License-Identifier: Apache-2.0
# A transport that silentpin has no profile for, its drivers and copies, and a server on it.
FOURTH_B := $(B)/fourth
FOURTH_HDRS := $(wildcard tests/fourth/*.h)
FOURTH_CC = $(CC) -D_GNU_SOURCE -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -pthread -fPIC
FOURTH_AT := '-Wl,-rpath,$$ORIGIN' -L$(FOURTH_B)

targets: $(FOURTH_B)/ferryman

$(FOURTH_B)/libcrane.so: tests/fourth/crane.c $(FOURTH_HDRS)
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(FOURTH_CC) -shared $< -o $@
$(FOURTH_B)/libferry.so: tests/fourth/ferry.c $(FOURTH_B)/libcrane.so $(FOURTH_HDRS)
	$(call say,TEST,$@)
	$(Q)$(FOURTH_CC) -shared $< $(FOURTH_AT) -lcrane -o $@
$(FOURTH_B)/libdock_tcp.so: tests/fourth/dock_tcp.c $(FOURTH_B)/libferry.so $(FOURTH_HDRS)
	$(call say,TEST,$@)
	$(Q)$(FOURTH_CC) -s -shared $< $(FOURTH_AT) -lferry -o $@
$(FOURTH_B)/ferryman: tests/fourth/ferryman.c $(FOURTH_B)/libdock_tcp.so $(FOURTH_HDRS)
	$(call say,TEST,$@)
	$(Q)$(FOURTH_CC) $< -Wl,--no-as-needed $(FOURTH_AT) -ldock_tcp -lferry -lcrane -o $@
