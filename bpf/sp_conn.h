/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel side keeps of a connection. User space makes the map, and needs the size. */
#ifndef SP_CONN_H
#define SP_CONN_H

#include "sp_sock.h"

enum sp_kind { SP_KIND_UNKNOWN = 0, SP_KIND_ZMTP, SP_KIND_HTTP, SP_KIND_IGNORE };
enum sp_side { SP_SIDE_UNKNOWN = 0, SP_SIDE_ACCEPT, SP_SIDE_CONNECT };

enum sp_dir_is {
	SP_DIR_NEW = 0, /* no byte seen */
	SP_DIR_FOLLOW,  /* decoded, every byte of it */
	SP_DIR_SEEK,    /* in the middle of a stream: waits for a message to begin */
	SP_DIR_OFF,     /* nothing to be had */
};

/* Where a call's bytes are in the process. */
struct sp_at {
	__u64 left;     /* of this message */
	__u64 cur, len; /* the segment at hand */
	__u64 iov;      /* the next ones */
	__u64 mm;       /* the messages to come of a recvmmsg or sendmmsg */
	__u32 segs, msgs;
};

/* One direction of a connection. */
struct sp_dir {
	__u32 busy;  /* programs at work on it: more than one is a race */
	__u32 raced; /* bytes passed while one was at work */
	__u32 pos;   /* TCP's sequence number behind the last byte seen */
	__u8 is;     /* enum sp_dir_is */
	__u8 known;  /* pos is set */
	__u8 idle;   /* all that had come was taken at ns: what comes later may be a beginning */
	__u8 trial;  /* SEEK: reads in a row that were whole messages */
	__u8 fails;
	__u8 why;          /* enum sp_conn_why of bytes announced as unseen */
	__u8 begun;        /* from the stream's beginning */
	__u8 odd;          /* SEEK: times that nothing known began after a silence */
	__u64 ns;          /* SEEK: when bytes last passed */
	struct sp_at back; /* SEEK: where the bytes at hand begin */
	union {
		struct sp_zmtp z;
		struct sp_http h;
	};
};

struct sp_conn {
	__u64 id;
	__u64 sk;    /* the kernel's struct sock */
	__u64 ino;   /* of the socket: tells another socket at the same address */
	__u64 heads; /* HTTP: bit n modulo 64: request n was a HEAD */
	__u32 pid;
	__u32 fd;
	__u32 requests, replies; /* HTTP: begun */
	__u32 cand;              /* bit i: rule i may apply */
	__u8 kind;               /* enum sp_kind */
	__u8 rule;               /* once kind is known; 0xff before */
	__u8 side;               /* enum sp_side */
	__u8 family;
	__u8 begun;     /* unix: accept or connect was seen */
	__u8 announced; /* the OPEN record is out */
	__u8 eof, ended;
	__u8 port; /* a rule fits by a port: worth a record at first sight */
	__u8 told; /* the KIND record is out */
	__u8 dim;  /* bit: dir; told that bytes of it pass undecoded */
	__u16 lport, rport;
	__u8 laddr[16], raddr[16];
	struct sp_dir dir[2];
};

#endif
