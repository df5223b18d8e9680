/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the stand-in library moves bytes: one TCP connection for each pair of agents, opened by the
 * writing side. A write carries its descriptors, its notification text and its data; the receiver
 * puts the data straight into registered memory and acknowledges the operation. So an operation is
 * complete when, and only when, the peer process has run: a stopped peer leaves it in progress, a
 * killed one resets the connection. Nothing here blocks its caller except progress(timeout).
 */
#ifndef NODE_ENGINE_H
#define NODE_ENGINE_H

#include <deque>
#include <list>
#include <map>
#include <mutex>

#include "nixl.h"

struct Segment {
	uintptr_t addr;
	size_t len;
};

struct Op {
	uint64_t id = 0;
	std::string peer, notif;
	std::vector<Segment> local, remote;
	uint64_t bytes = 0, sent = 0; /* of the data, as given to the kernel */
	nixl_status_t status = NIXL_ERR_NOT_POSTED;
};

/* What goes over the wire before descriptors, text and data. Same machine: native byte order. */
struct FrameHead {
	uint32_t magic;
	uint32_t kind;
	uint64_t id;
	uint32_t ndesc, text_len;
	uint64_t bytes;
	int32_t status;
	uint32_t reserved;
};
enum FrameKind : uint32_t { FRAME_HELLO = 1, FRAME_WRITE, FRAME_ACK, FRAME_NOTIF };

struct OutFrame {
	std::string head; /* header, descriptors, text */
	std::shared_ptr<Op> op;
	size_t head_done = 0, seg = 0, seg_done = 0;
};

struct Conn {
	int fd = -1;
	std::string peer;
	bool dead = false;
	std::deque<OutFrame> out;
	std::map<uint64_t, std::shared_ptr<Op>> unacked;

	/* The frame that is being received. */
	enum { HEAD, BODY, DATA } state = HEAD;
	FrameHead in{};
	std::string in_buf;
	std::vector<Segment> in_segs;
	std::string in_text;
	size_t in_seg = 0, in_seg_done = 0;
	bool in_refused = false;
};

class Engine
{
      public:
	explicit Engine(const std::string &agent);
	~Engine();

	/* step() with the lock, and once more when there is something to do or the time is up */
	void progress(int timeout_ms);

	std::mutex lock; /* taken by the caller around every call below */

	void allow(uintptr_t addr, size_t len);
	bool in_allowed(uintptr_t addr, size_t len) const;
	std::string metadata() const;
	nixl_status_t connect(const std::string &md, std::string &peer);
	bool knows(const std::string &peer) const;
	nixl_status_t post(const std::shared_ptr<Op> &op);
	nixl_status_t notify(const std::string &peer, const std::string &text);
	void step(); /* one bounded, non-blocking round over all connections */
	void drain(nixl_notifs_t &to);
	void set_rate(uint64_t bytes_per_s);
	std::vector<nixlOpView> ops() const;

      private:
	std::string name;
	int listen_fd = -1;
	uint16_t port = 0;
	uint64_t next_id = 1;
	std::vector<Segment> allowed;
	std::list<Conn> conns;
	nixl_notifs_t notifs;
	uint64_t rate = 0, rate_tokens = 0, rate_ns = 0;

	Conn *find(const std::string &peer);
	void accept_all();
	void drop(Conn &c);
	void queue_frame(Conn &c, FrameKind kind, uint64_t id, int status, const std::string &text,
			 const std::shared_ptr<Op> &op);
	void send_some(Conn &c);
	bool send_frame(Conn &c, OutFrame &f, size_t &budget);
	void recv_some(Conn &c);
	bool recv_bytes(Conn &c, void *to, size_t want, size_t &got, size_t &budget);
	bool recv_buffered(Conn &c, size_t want, size_t &budget);
	bool recv_data(Conn &c, size_t &budget);
	void frame_body(Conn &c);
	void frame_done(Conn &c);
	void refill();
	/* For poll(2): descriptors and events; the timeout is cut where the rate limit asks. */
	void poll_set(std::vector<struct pollfd> &fds, int &timeout_ms) const;
};

#endif
