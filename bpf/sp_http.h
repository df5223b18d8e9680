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

#define SP_HTTP_KEYS    4  /* room, host, rid and one more */
#define SP_HTTP_KEY_LEN 31 /* longest key */
#define SP_HTTP_TEXT    64 /* longest value kept, or method and path */

struct sp_http_key {
	__u8 len; /* 0: unused */
	char name[SP_HTTP_KEY_LEN];
};

/* What a byte completed. */
enum sp_http_did {
	SP_HTTP_NOTHING = 0,
	SP_HTTP_DID_HEAD,  /* request line (text: "POST /generate") or status (code), and all
			      headers. Informational  replies (1xx but 101) give nothing */
	SP_HTTP_DID_LIST,  /* the value of key is a list: it begins */
	SP_HTTP_DID_VALUE, /* value of key: index in its list (-1: no list), is_num and num, or text
			    */
	SP_HTTP_DID_END,   /* the message is complete. A message without body gives HEAD, and END at
			      the call of sp_http_bodyless() */
	SP_HTTP_DID_BAD,   /* not HTTP, or not at the beginning of a message */
	SP_HTTP_DID_UNREADABLE, /* why: VERSION, ENCODED, UPGRADE, LONG */
};

struct sp_http {
	__u64 left; /* of the body, or of the chunk */
	__u64 num;
	__u32 count; /* messages completed or begun on this direction */
	__u32 depth; /* of objects and lists in the body */
	__u16 code;
	__s16 index;
	__u8 is;    /* state of the message machine */
	__u8 json;  /* state of the body's */
	__u8 reply; /* 1: this direction carries replies; set by the caller, once */
	__u8 key;   /* which key a value belongs to */
	__u8 is_num;
	__u8 len; /* bytes in text */
	__u8 why; /* enum sp_conn_why */
	__u8 chunked, has_length, until_close, head_only, expect, bad_value;
	__u8 cand; /* bit i: the string at hand may be key i */
	__u8 at;   /* position in a header's name, a key, a chunk line */
	__u8 hdr;  /* which header the line is */
	__u8 esc;  /* after a backslash */
	__u8 lines;
	__u32 length; /* of the head so far: a bound */
	__u64 lists;  /* spare for the decoder */
	char text[SP_HTTP_TEXT];
};

#endif
