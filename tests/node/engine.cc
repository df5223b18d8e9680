// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace
{
constexpr uint32_t MAGIC = 0x4e584c31;
constexpr size_t STEP_BUDGET = 1 << 20; /* bytes a round: a status call stays below a millisecond */
constexpr int SOCKET_BUFFER = 256 << 10; /* small, so that a slow receiver is felt by the sender */
constexpr uint64_t EAGER_MAX = 1024;     /* complete once the kernel has it, as a put would be */
constexpr uint32_t MAX_DESCS = 1 << 20, MAX_TEXT = 1 << 16;

uint64_t now_ns()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int tcp_socket()
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		throw std::system_error(errno, std::generic_category(), "socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &SOCKET_BUFFER, sizeof(SOCKET_BUFFER));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &SOCKET_BUFFER, sizeof(SOCKET_BUFFER));
	return fd;
}

void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

bool again(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR || err == ENOTCONN;
}
} // namespace

Engine::Engine(const std::string &agent) : name(agent)
{
	const char *wanted = getenv("SILENTPIN_NODE_PORT"); /* of the caller's choice; none: any */
	struct sockaddr_in sa = {};
	socklen_t len = sizeof(sa);

	listen_fd = tcp_socket();
	sa.sin_family = AF_INET;
	sa.sin_port = htons(static_cast<uint16_t>(wanted ? atoi(wanted) : 0));
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listen_fd, reinterpret_cast<struct sockaddr *>(&sa), sizeof(sa)) ||
	    listen(listen_fd, 64) ||
	    getsockname(listen_fd, reinterpret_cast<struct sockaddr *>(&sa), &len)) {
		int err = errno;

		close(listen_fd);
		throw std::system_error(err, std::generic_category(), "listen");
	}
	port = ntohs(sa.sin_port);
}

Engine::~Engine()
{
	for (auto &c : conns)
		if (c.fd >= 0)
			close(c.fd);
	close(listen_fd);
}

void Engine::allow(uintptr_t addr, size_t len)
{
	allowed.push_back({addr, len});
}

bool Engine::in_allowed(uintptr_t addr, size_t len) const
{
	return std::any_of(allowed.begin(), allowed.end(), [&](const Segment &s) {
		return addr >= s.addr && len <= s.len && addr - s.addr <= s.len - len;
	});
}

/* "NODE1 port pid name": the pid is for those who ask whether the peer can answer at all. */
std::string Engine::metadata() const
{
	return "NODE1 " + std::to_string(port) + " " + std::to_string(getpid()) + " " + name;
}

Conn *Engine::find(const std::string &peer)
{
	for (auto &c : conns)
		if (c.peer == peer)
			return &c;
	return nullptr;
}

bool Engine::knows(const std::string &peer) const
{
	return std::any_of(conns.begin(), conns.end(),
			   [&](const Conn &c) { return c.peer == peer; });
}

nixl_status_t Engine::connect(const std::string &md, std::string &peer)
{
	struct sockaddr_in sa = {};
	char text[128];
	unsigned int peer_port;

	if (sscanf(md.c_str(), "NODE1 %5u %*u %127s", &peer_port, text) != 2 || peer_port > 65535)
		return NIXL_ERR_INVALID_PARAM;
	peer = text;
	if (knows(peer))
		return NIXL_SUCCESS;
	Conn &c = conns.emplace_back();
	c.peer = peer;
	c.fd = tcp_socket();
	no_delay(c.fd);
	sa.sin_family = AF_INET;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sa.sin_port = htons(static_cast<uint16_t>(peer_port));
	if (::connect(c.fd, reinterpret_cast<struct sockaddr *>(&sa), sizeof(sa)) &&
	    errno != EINPROGRESS) {
		drop(c);
		return NIXL_ERR_REMOTE_DISCONNECT;
	}
	queue_frame(c, FRAME_HELLO, 0, 0, name, nullptr);
	return NIXL_SUCCESS;
}

void Engine::accept_all()
{
	int fd;

	while ((fd = accept4(listen_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		no_delay(fd);
		conns.emplace_back().fd = fd;
	}
}

/* The connection is gone: whatever has not been acknowledged never will be. */
void Engine::drop(Conn &c)
{
	if (c.fd >= 0)
		close(c.fd);
	c.fd = -1;
	c.dead = true;
	for (auto &u : c.unacked)
		u.second->status = NIXL_ERR_REMOTE_DISCONNECT;
	c.unacked.clear();
	c.out.clear();
}

void Engine::queue_frame(Conn &c, FrameKind kind, uint64_t id, int status, const std::string &text,
			 const std::shared_ptr<Op> &op)
{
	FrameHead h = {};
	OutFrame f;

	h.magic = MAGIC;
	h.kind = kind;
	h.id = id;
	h.status = status;
	h.text_len = static_cast<uint32_t>(text.size());
	h.ndesc = op ? static_cast<uint32_t>(op->remote.size()) : 0;
	h.bytes = op ? op->bytes : 0;
	f.head.assign(reinterpret_cast<const char *>(&h), sizeof(h));
	if (op)
		f.head.append(reinterpret_cast<const char *>(op->remote.data()),
			      op->remote.size() * sizeof(Segment));
	f.head += text;
	f.op = op;
	c.out.push_back(std::move(f));
}

nixl_status_t Engine::post(const std::shared_ptr<Op> &op)
{
	Conn *c = find(op->peer);

	if (!c)
		return NIXL_ERR_NOT_FOUND;
	if (c->dead)
		return op->status = NIXL_ERR_REMOTE_DISCONNECT;
	op->id = next_id++;
	op->sent = 0;
	op->status = NIXL_IN_PROG;
	c->unacked[op->id] = op;
	queue_frame(*c, FRAME_WRITE, op->id, 0, op->notif, op);
	send_some(*c);
	if (!c->dead && op->bytes <= EAGER_MAX && c->out.empty()) {
		c->unacked.erase(op->id);
		op->status = NIXL_SUCCESS;
	}
	return op->status;
}

nixl_status_t Engine::notify(const std::string &peer, const std::string &text)
{
	Conn *c = find(peer);

	if (!c)
		return NIXL_ERR_NOT_FOUND;
	if (c->dead)
		return NIXL_ERR_REMOTE_DISCONNECT;
	queue_frame(*c, FRAME_NOTIF, 0, 0, text, nullptr);
	send_some(*c);
	return c->dead ? NIXL_ERR_REMOTE_DISCONNECT : NIXL_SUCCESS;
}

/* True when the whole frame has been given to the kernel. */
bool Engine::send_frame(Conn &c, OutFrame &f, size_t &budget)
{
	while (budget) {
		const char *from;
		size_t len;
		ssize_t n;

		if (f.head_done < f.head.size()) {
			from = f.head.data() + f.head_done;
			len = f.head.size() - f.head_done;
		} else if (f.op && f.seg < f.op->local.size()) {
			const Segment &s = f.op->local[f.seg];

			from = reinterpret_cast<const char *>(s.addr) + f.seg_done;
			len = s.len - f.seg_done;
		} else {
			return true;
		}
		n = send(c.fd, from, std::min(len, budget), MSG_NOSIGNAL);
		if (n < 0) {
			if (!again(errno))
				drop(c);
			return false;
		}
		budget -= static_cast<size_t>(n);
		if (f.head_done < f.head.size()) {
			f.head_done += static_cast<size_t>(n);
			continue;
		}
		f.op->sent += static_cast<uint64_t>(n);
		f.seg_done += static_cast<size_t>(n);
		if (f.seg_done == f.op->local[f.seg].len) {
			f.seg++;
			f.seg_done = 0;
		}
	}
	return false;
}

void Engine::send_some(Conn &c)
{
	size_t budget = STEP_BUDGET;

	while (!c.dead && !c.out.empty() && send_frame(c, c.out.front(), budget))
		c.out.pop_front();
}

/* True when all wanted bytes have come. Ends the connection on end of file and on errors. */
bool Engine::recv_bytes(Conn &c, void *to, size_t want, size_t &got, size_t &budget)
{
	ssize_t n;

	if (!budget)
		return false;
	n = recv(c.fd, to, std::min(want, budget), 0);
	if (n <= 0) {
		if (n == 0 || !again(errno))
			drop(c);
		budget = 0;
		return false;
	}
	got += static_cast<size_t>(n);
	budget -= static_cast<size_t>(n);
	if (rate)
		rate_tokens -= std::min<uint64_t>(rate_tokens, static_cast<uint64_t>(n));
	return static_cast<size_t>(n) == want;
}

bool Engine::recv_buffered(Conn &c, size_t want, size_t &budget)
{
	size_t had = c.in_buf.size(), got = 0;
	bool whole;

	if (had == want)
		return true;
	c.in_buf.resize(want);
	whole = recv_bytes(c, c.in_buf.data() + had, want - had, got, budget);
	c.in_buf.resize(had + got);
	return whole;
}

/* Into registered memory; what the peer must not write is read and thrown away. */
bool Engine::recv_data(Conn &c, size_t &budget)
{
	char waste[4096];

	while (c.in_seg < c.in_segs.size()) {
		Segment &s = c.in_segs[c.in_seg];
		size_t got = 0, want = s.len - c.in_seg_done;
		void *to = reinterpret_cast<void *>(s.addr + c.in_seg_done);

		if (c.in_refused) {
			to = waste;
			want = std::min(want, sizeof(waste));
		}
		if (want)
			recv_bytes(c, to, want, got, budget);
		c.in_seg_done += got;
		if (c.in_seg_done == s.len) {
			c.in_seg++;
			c.in_seg_done = 0;
		} else if (!got) {
			return false;
		}
	}
	return true;
}

void Engine::frame_body(Conn &c)
{
	size_t descs = c.in.ndesc * sizeof(Segment);

	c.in_segs.resize(c.in.ndesc);
	memcpy(c.in_segs.data(), c.in_buf.data(), descs);
	c.in_text.assign(c.in_buf, descs, c.in.text_len);
	c.in_seg = c.in_seg_done = 0;
	c.in_refused = !std::all_of(c.in_segs.begin(), c.in_segs.end(),
				    [&](const Segment &s) { return in_allowed(s.addr, s.len); });
}

void Engine::frame_done(Conn &c)
{
	switch (c.in.kind) {
	case FRAME_HELLO:
		c.peer = c.in_text;
		break;
	case FRAME_WRITE:
		if (!c.in_refused && !c.in_text.empty())
			notifs[c.peer].push_back(c.in_text);
		queue_frame(c, FRAME_ACK, c.in.id, c.in_refused ? NIXL_ERR_NOT_ALLOWED : 0, "",
			    nullptr);
		break;
	case FRAME_NOTIF:
		notifs[c.peer].push_back(c.in_text);
		break;
	case FRAME_ACK: {
		auto u = c.unacked.find(c.in.id);

		/* Not there: it was complete for the sender before the peer said so. */
		if (u != c.unacked.end()) {
			u->second->status = static_cast<nixl_status_t>(c.in.status);
			c.unacked.erase(u);
		}
		break;
	}
	default:
		drop(c);
	}
}

void Engine::recv_some(Conn &c)
{
	size_t budget = STEP_BUDGET;

	if (rate)
		budget = std::min<size_t>(budget, rate_tokens);
	while (!c.dead) {
		if (c.state == Conn::HEAD) {
			if (!recv_buffered(c, sizeof(c.in), budget))
				return;
			memcpy(&c.in, c.in_buf.data(), sizeof(c.in));
			c.in_buf.clear();
			if (c.in.magic != MAGIC || c.in.ndesc > MAX_DESCS ||
			    c.in.text_len > MAX_TEXT) {
				drop(c);
				return;
			}
			c.state = Conn::BODY;
		}
		if (c.state == Conn::BODY) {
			if (!recv_buffered(c, c.in.ndesc * sizeof(Segment) + c.in.text_len, budget))
				return;
			frame_body(c);
			c.in_buf.clear();
			c.state = Conn::DATA;
		}
		if (!recv_data(c, budget))
			return;
		c.state = Conn::HEAD;
		frame_done(c);
	}
}

void Engine::refill()
{
	uint64_t now = now_ns(), fresh;

	if (!rate)
		return;
	fresh = static_cast<uint64_t>(static_cast<double>(now - rate_ns) * 1e-9 *
				      static_cast<double>(rate));
	if (fresh) {
		rate_tokens = std::min<uint64_t>(rate_tokens + fresh, rate / 20 + 4096);
		rate_ns = now;
	}
}

void Engine::step()
{
	accept_all();
	refill();
	for (auto &c : conns) {
		if (!c.dead)
			recv_some(c);
		if (!c.dead)
			send_some(c);
	}
	/* Nothing asks for a dead connection that came from outside. */
	conns.remove_if([](const Conn &c) { return c.dead && c.peer.empty(); });
}

void Engine::drain(nixl_notifs_t &to)
{
	for (auto &n : notifs) {
		auto &list = to[n.first];

		list.insert(list.end(), n.second.begin(), n.second.end());
	}
	notifs.clear();
}

void Engine::set_rate(uint64_t bytes_per_s)
{
	rate = bytes_per_s;
	rate_tokens = 0;
	rate_ns = now_ns();
}

std::vector<nixlOpView> Engine::ops() const
{
	std::vector<nixlOpView> all;

	for (auto &c : conns)
		for (auto &u : c.unacked)
			all.push_back({u.second->peer, u.second->notif, u.second->bytes,
				       u.second->sent, u.second->status});
	return all;
}

void Engine::poll_set(std::vector<struct pollfd> &fds, int &timeout_ms) const
{
	bool starved = rate && rate_tokens < 4096;

	fds.push_back({listen_fd, POLLIN, 0});
	for (auto &c : conns)
		if (!c.dead)
			fds.push_back({c.fd,
				       static_cast<short>((starved ? 0 : POLLIN) |
							  (c.out.empty() ? 0 : POLLOUT)),
				       0});
	if (starved && (timeout_ms < 0 || timeout_ms > 2))
		timeout_ms = 2;
}

void Engine::progress(int timeout_ms)
{
	std::vector<struct pollfd> fds;

	{
		std::lock_guard<std::mutex> hold(lock);

		step();
		poll_set(fds, timeout_ms);
	}
	if (poll(fds.data(), fds.size(), timeout_ms) <= 0 && !timeout_ms)
		return;
	std::lock_guard<std::mutex> hold(lock);

	step();
}
