// SPDX-License-Identifier: Apache-2.0
/* What connections are called, in words. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "collect/conns.h"
#include "util/cleanup.h"

void conns_address(unsigned int family, const unsigned char *addr, unsigned int port, char *buf,
		   size_t len)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	char ip[INET6_ADDRSTRLEN] = "";

	buf[0] = '\0';
	if (family == AF_INET6 && !memcmp(addr, mapped, sizeof(mapped))) {
		family = AF_INET;
		addr += sizeof(mapped);
	}
	if (family == AF_UNIX) {
		snprintf(buf, len, "unix");
	} else if (family == AF_INET || family == AF_INET6) {
		inet_ntop((int)family, addr, ip, sizeof(ip));
		snprintf(buf, len, family == AF_INET ? "%s:%u" : "[%s]:%u", ip, port);
	}
}

const char *conns_why(unsigned int why)
{
	static const char *const words[SP_WHY_MAX] = {
		[SP_WHY_NONE] = "",
		[SP_WHY_GAP] = "bytes passed unseen",
		[SP_WHY_SENDFILE] = "sendfile or splice",
		[SP_WHY_FAULT] = "bytes that cannot be read",
		[SP_WHY_BAD] = "not what the protocol allows",
		[SP_WHY_RACE] = "two threads at once",
		[SP_WHY_CURVE] = "encrypted, CURVE",
		[SP_WHY_MECHANISM] = "a security mechanism",
		[SP_WHY_VERSION] = "another version of the protocol",
		[SP_WHY_TLS] = "encrypted, TLS",
		[SP_WHY_ENCODED] = "a compressed body",
		[SP_WHY_UPGRADE] = "another protocol from here on",
		[SP_WHY_LONG] = "a line too long",
		[SP_WHY_BEFORE] = "it began before the watch, and is not believed yet",
		[SP_WHY_NOTHING] = "nothing of interest is spoken there",
		[SP_WHY_OPEN_END] = "the client closed before a reply without a length ended",
	};

	return why < ARRAY_SIZE(words) && words[why] ? words[why] : "";
}
