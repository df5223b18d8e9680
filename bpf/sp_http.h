/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * HTTP/1.1 (RFC 9112), one direction of one connection, byte by byte, and in a request's JSON body
 * (RFC 8259) the values of a few keys of the outermost object. The same code runs in the kernel
 * and, for tests and fuzzing, in user space: no helper, no map. Of a body nothing is kept but these
 * values; the text of strings is never kept, unless it is a wanted key's own value.
 */
#ifndef SP_HTTP_H
#define SP_HTTP_H

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SP_HTTP_KEYS     4     /* room, host, rid and one more */
#define SP_HTTP_KEY_LEN  31    /* longest key */
#define SP_HTTP_TEXT     64    /* method and path, cut here; or the beginning of a value */
#define SP_HTTP_METHOD   31    /* longest method */
#define SP_HTTP_HEAD_MAX 65536 /* bytes of a head, a chunk's line, or all trailers */

struct sp_http_key {
	__u8 len; /* 0: unused */
	char name[SP_HTTP_KEY_LEN];
};
/* The keys of a rule. One type, so that the verifier knows how much there is: rule->key is cast. */
struct sp_http_keys {
	struct sp_http_key key[SP_HTTP_KEYS];
};

/* What a byte completed. */
enum sp_http_did {
	SP_HTTP_NOTHING = 0,
	/*
	 * Request line (text: "POST /generate") or status (code), and all headers; count is its
	 * number. Informational replies (1xx but 101) give nothing. why is SP_WHY_ENCODED when the
	 * request's body is compressed: it is followed, and not searched.
	 */
	SP_HTTP_DID_HEAD,
	SP_HTTP_DID_LIST, /* the value of key is a list: it begins */
	/* Value of key: index in its list (-1: no list), is_num and num, or text[0..len), with the
	 * hash (sp_id.h) of all of it in num; len SP_HTTP_TEXT: it may be longer. */
	SP_HTTP_DID_VALUE,
	/*
	 * The message is complete. A byte that gives HEAD or VALUE may be the message's last, too:
	 * after these (and LIST) sp_http_bodyless() tells, and then there will be no DID_END.
	 */
	SP_HTTP_DID_END,
	SP_HTTP_DID_BAD,        /* not HTTP, or not at the beginning of a message */
	SP_HTTP_DID_UNREADABLE, /* why: VERSION, UPGRADE, LONG */
};

struct sp_http {
	__u64 left; /* of the body, or of the chunk */
	__u64 num;
	__u32 count;  /* heads given on this direction, the one at hand included */
	__u32 depth;  /* of objects and lists in the body */
	__u32 length; /* of the head, chunk line or trailers so far: a bound */
	__u16 code;
	__s16 index;
	__u8 is;    /* state of the message machine (sp_http_step.h) */
	__u8 json;  /* state of the body's */
	__u8 reply; /* 1: this direction carries replies; set by the caller, once */
	__u8 key;   /* which key a value belongs to; SP_HTTP_KEYS: none */
	__u8 is_num;
	__u8 len;         /* bytes in text */
	__u8 why;         /* enum sp_conn_why */
	__u8 chunked;     /* 1: the last transfer coding is chunked, 2: another is */
	__u8 has_length;  /* Content-Length was given */
	__u8 until_close; /* a reply that ends with the connection */
	__u8 head_only;   /* set by the caller at DID_HEAD: the reply is to a HEAD */
	__u8 expect;      /* the request waits for 100 (Continue) */
	__u8 encoded;     /* the body is compressed */
	__u8 bad_value;   /* the value at hand is none that is given */
	__u8 cand;        /* bit i: the header's name, or the JSON string, may be number i */
	__u8 at;          /* position in a name, a token, a key of the body */
	__u8 hdr;         /* which header the line is */
	__u8 sub;         /* state inside a value, target or chunk line */
	__u8 esc;         /* after a backslash */
	__u8 cr;          /* after a CR: only LF may follow */
	__u8 lines;       /* a header line has been seen */
	__u8 connect;     /* method CONNECT */
	__u8 in_list;     /* in the list that is the value of a wanted key */
	__u8 pad;
	__u16 next; /* index of the list's value that is read or comes next */
	__u16 pad2;
	char text[SP_HTTP_TEXT];
};

#endif
