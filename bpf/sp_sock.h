/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets: the contract between bpf/ and user/ for what is watched on the target's stream sockets.
 * The kernel side finds the socket behind a descriptor (so that dup, fork and reuse of numbers need
 * no bookkeeping), checks by TCP's own byte counters that nothing passed unseen, decodes in place
 * (sp_zmtp.h, sp_http.h) and lets only declared fields out. Payload is read into a scratch that is
 * cleared after every call; it is in no record.
 */
#ifndef SP_SOCK_H
#define SP_SOCK_H

#include "sp_http.h"
#include "sp_shared.h"
#include "sp_zmtp.h"

#define SP_MAX_SOCK_RULES 8
#define SP_MAX_CONNS      16384

enum sp_sock_decode { SP_DEC_NONE = 0, SP_DEC_ZMTP, SP_DEC_HTTP };

/* Directions, as the watched process sees them. */
#define SP_DIR_IN  0
#define SP_DIR_OUT 1

/* One entry of a profile's `sockets:`. Array map sp_sock_rules, index = entry. */
struct sp_sock_rule {
	__u8 decode; /* enum sp_sock_decode */
	__u8 dirs;   /* ZMTP: 1 << SP_DIR_*: where wanted messages travel. HTTP: requests come IN */
	__u8 bytes;  /* the beginning of the stream must say so: a ZMTP greeting, an HTTP request */
	__u8 pad;
	__u16 listen_lo, listen_hi; /* local port of an accepted connection; 0,0: any */
	__u16 peer_lo, peer_hi;     /* remote port; 0,0: any */
	__u16 probe; /* index into sp_probes: the heads (ZMTP), and the name of the events */
	__u16 nkeys; /* HTTP: keys in use */
	struct sp_http_key key[SP_HTTP_KEYS];
};

/* Map sp_sock_procs: pid -> bit i: rule i holds in this process. */

/* How socket calls are seen. Kept by user space; the programs do not care. */
enum sp_sock_call { /* low byte of a sock_libc cookie */
		    SP_CALL_READ =
			    1, /* (fd, buf, len) -> n: read, recv, recvfrom (flags in arg 4) */
		    SP_CALL_RECV,
		    SP_CALL_READV,    /* (fd, iov, n) */
		    SP_CALL_RECVMSG,  /* (fd, msghdr, flags) */
		    SP_CALL_RECVMMSG, /* (fd, mmsghdr, vlen, flags) -> messages */
		    SP_CALL_WRITE,
		    SP_CALL_SEND,
		    SP_CALL_WRITEV,
		    SP_CALL_SENDMSG,
		    SP_CALL_SENDMMSG,
		    SP_CALL_SENDFILE, /* (out fd, in fd, ..) -> bytes nobody saw */
		    SP_CALL_SPLICE,  /* (in fd, off, out fd, off, len, flags) -> bytes nobody saw */
		    SP_CALL_ACCEPT,  /* (fd, ..) -> new fd */
		    SP_CALL_CONNECT, /* (fd, ..) -> 0 or -EINPROGRESS */
		    SP_CALL_CLOSE,   /* at its entry: (fd) */
		    SP_CALL_SHUTDOWN, /* (fd, how) */
		    SP_CALL_MAX,
};
/*
 * Cookie of a sock_libc site. AFTER: just behind the system call instruction: the arguments are
 * still in the system call's registers and the result in the first (x86-64: rdi rsi rdx r10 r8 r9,
 * rax), one hit does it all. ENTRY and RET: the arguments are kept from the function's entry until
 * its ret, where no such place was found. A raw system call gives -errno, a libc function -1.
 */
enum sp_sock_site { SP_SOCK_AFTER = 0, SP_SOCK_ENTRY, SP_SOCK_RET };
#define SP_SOCK_COOKIE(call, site) ((__u64)(call) | (__u64)(site) << 8)
#define SP_SOCK_COOKIE_CALL(c)     ((__u32)((c)&0xff))
#define SP_SOCK_COOKIE_SITE(c)     ((__u32)((c) >> 8 & 0xff))

/* ---- records -------------------------------------------------------------------------------- */
/*
 * A ZMTP frame of a wanted message is a plain SP_REC_HIT of the rule's probe, as a frame of a
 * uprobe is: argument frame_arg holds it, argument sock_arg the connection's id. Its tid is 0: the
 * thread that reads a socket is not the one that acts on the message. SP_RF_CUT never occurs.
 */

/* SP_REC_CONN */
enum sp_conn_what {
	/* First sight, when a rule fits by a port; else as soon as it is known what is spoken, so
	 * that of foreign connections nothing is told. num: 1 from its very beginning, 0 begun
	 * before
	 */
	SP_CONN_OPEN = 1,
	SP_CONN_KIND,  /* what it speaks is known: decode; num: 1 both directions from the beginning
			*/
	SP_CONN_TRUST, /* dir is decoded from here on, its beginning was not seen (resynchronised)
			*/
	SP_CONN_LOST,  /* dir cannot be followed any more; why; num: bytes that passed unseen */
	/* why: encrypted, or a version that is not spoken here. ENCODED: only the body of request
	 * num, what follows is decoded */
	SP_CONN_UNREADABLE,
	SP_CONN_EOF,    /* the peer has closed its direction */
	SP_CONN_CLOSED, /* the connection has ended in order, or this side has closed it */
	SP_CONN_RESET,  /* aborted: by a reset, a time-out */
};
enum sp_conn_why {
	SP_WHY_NONE = 0,
	SP_WHY_GAP,       /* bytes passed unseen: a call not watched, another process, io_uring */
	SP_WHY_SENDFILE,  /* bytes that sendfile or splice moved */
	SP_WHY_FAULT,     /* bytes that could not be read */
	SP_WHY_BAD,       /* not what the protocol allows */
	SP_WHY_RACE,      /* two threads at the same direction at once */
	SP_WHY_CURVE,     /* ZMTP: encrypted */
	SP_WHY_MECHANISM, /* ZMTP: GSSAPI or unknown */
	SP_WHY_VERSION,   /* ZMTP before 3.0, HTTP/2 */
	SP_WHY_TLS,
	SP_WHY_ENCODED,  /* HTTP: the body is compressed */
	SP_WHY_UPGRADE,  /* HTTP: 101, or CONNECT */
	SP_WHY_LONG,     /* a header or chunk line longer than is followed */
	SP_WHY_BEFORE,   /* it began before the watch, and is not believed yet (LOST) */
	SP_WHY_NOTHING,  /* nothing of interest is spoken there after all (TRUST) */
	SP_WHY_OPEN_END, /* HTTP: a reply without a length, and the client had closed first */
	SP_WHY_MAX,
};
struct sp_rec_conn {
	struct sp_rec h; /* of the call; what a packet did: pid of the connection, tid 0 */
	__u64 conn;      /* id: unique while silentpin runs, never 0 */
	__u64 num;
	__u8 what;          /* enum sp_conn_what */
	__u8 why;           /* enum sp_conn_why */
	__u8 dir;           /* SP_DIR_*; TRUST, LOST, EOF */
	__u8 decode;        /* enum sp_sock_decode, when known */
	__u8 family;        /* AF_UNIX 1, AF_INET 2, AF_INET6 10 */
	__u8 rule;          /* index, 0xff: none yet */
	__u16 lport, rport; /* host order */
	__u16 pad;
	__u32 fd;
	__u8 laddr[16], raddr[16]; /* IPv4 in the first 4, network order */
};

/* SP_REC_HTTP: h.probe is the rule's probe. */
enum sp_http_what {
	SP_HTTP_REQUEST = 1, /* head complete; text: method and path without the query, cut; num:
				request number on this connection, from 1 */
	SP_HTTP_VALUE, /* key; index in its list, -1: not a list, 0xfffe: the list begins; num or
			  text */
	SP_HTTP_REQUEST_END,
	SP_HTTP_REPLY, /* head complete: code; 1xx are not reported */
	SP_HTTP_REPLY_END,
};
struct sp_rec_http {
	struct sp_rec h;
	__u64 conn;
	__u64 num;   /* VALUE: the number, or the hash of the whole text (sp_id.h); else the
			request's (reply's) number on the connection */
	__u32 req;   /* number of the request on this connection, from 1; replies count the same way
		      */
	__u16 what;  /* enum sp_http_what */
	__u16 code;  /* REPLY */
	__u16 key;   /* VALUE: index into the rule's keys */
	__u16 index; /* VALUE */
	__u8 is_num;
	__u8 len;     /* of text; VALUE: SP_HTTP_TEXT, it may be longer */
	__u8 chunked; /* REPLY: the body has no length in its head */
	__u8 pad[5];
	char text[SP_HTTP_TEXT];
};

#endif
