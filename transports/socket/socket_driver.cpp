#include "transports/socket/socket_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/socket/address.h"
#include "transports/socket/socket_flow.h"

namespace fsbl {
namespace {

constexpr size_t kCarryBytes = 32 << 10;         // the beginning of a record, at most one whole
constexpr size_t kReceiveBytes = kMostReceived - kCarryBytes;
constexpr size_t kLeastRecordBytes = 23;         // a record that holds one byte: header, byte, type, tag
// A stream's receiver is woken for this much at once, where there is so much: a wake-up costs more than copying it.
// What is less waits for kRecvSlice at most.
constexpr int kStreamWakeUp = 256 << 10;
constexpr uint64_t kStreaming = 1 << 20;         // received so much: the greeting is over
constexpr uint32_t kUnlooked = 4;                // turns with buffers to give back before the sockets are looked at
constexpr uint32_t kUnwatch = 64;                // waits in recv() in a row before epoll forgets the socket
constexpr uint32_t kListener = UINT32_MAX;
constexpr Nanos kRecvSlice = 50'000'000;         // SO_RCVTIMEO of a socket that is waited on in recv()

}  // namespace

SocketDriver::SocketDriver(const DriverContext& context, std::unique_ptr<StreamFactory> streams)
    : context_(context), streams_(std::move(streams)), busy_(context.config.load.wait == WaitMode::busy) {}

SocketDriver::~SocketDriver() = default;

Expected<std::unique_ptr<Driver>> SocketDriver::create(const DriverContext& context,
                                                       std::unique_ptr<StreamFactory> streams) {
  std::unique_ptr<SocketDriver> driver(new SocketDriver(context, std::move(streams)));
  driver->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!driver->epoll_) return fault_errno("epoll_create1", errno);
  driver->wire_in_.resize(kMostReceived);
  driver->pieces_.reserve(1);
  if (!driver->streams_) return driver;
  driver->pieces_.reserve(kMostReceived / kLeastRecordBytes);
  driver->control_.reset(new std::byte[kControlBytes]);
  for (auto* sealing : {&driver->turns_[0], &driver->turns_[1], &driver->gathering_}) {
    *sealing = std::make_unique<Sealing>();
    (*sealing)->batch = driver->streams_->engines().make_batch();
    (*sealing)->wire.allocate(kWireBuffer);
  }
  driver->gathering_->wire.allocate(kGathered * RecordEngine::sealed_bound(RecordEngine::kMaxRecordBytes));
  driver->gathering_->parts.reserve(kGathered);
  return driver;
}

Expected<uint16_t> SocketDriver::listen(uint32_t expected_flows, uint16_t port) {
  const std::string what = fmt::format("listen on {} port {}", context_.address, port);
  FSBL_ASSIGN(Address address, parse_address(context_.address, port));
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fault_errno(what, errno);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), address.get(), address.size) != 0)
    return fault_errno(what, errno);
  if (::listen(fd.get(), 4096) != 0) return fault_errno(what, errno);
  address.size = sizeof address.storage;
  getsockname(fd.get(), address.get(), &address.size);
  port = ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);  // same place in sockaddr_in6
  epoll_event event{EPOLLIN, {.u32 = kListener}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) return fault_errno(what, errno);
  listener_ = std::move(fd);
  expected_flows_ = expected_flows;
  flows_.reserve(expected_flows);
  ready_.reserve(expected_flows);
  queue_.reserve(2 * expected_flows + 64);
  sent_.reserve(expected_flows);
  return port;
}

Expected<> SocketDriver::open(uint32_t count, uint16_t port) {
  const size_t total = flows_.size() + count;
  flows_.reserve(total);
  ready_.reserve(total);
  queue_.reserve(2 * total + 64);
  sent_.reserve(total);
  FSBL_ASSIGN(Address address, parse_address(context_.address, port));
  FSBL_ASSIGN(Address local, parse_address(context_.local_address, 0));
  for (uint32_t i = 0; i < count; ++i) {
    const std::string what = fmt::format("connect to {} port {}", context_.address, port);
    UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return fault_errno(what, errno, errno == EMFILE ? "raise the limit of open files, or use fewer streams" : "");
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd.get(), local.get(), local.size) != 0) return fault_errno(what, errno);
    if (connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) return fault_errno(what, errno);
    FSBL_TRY(add_flow(std::move(fd), true));
  }
  return {};
}

Expected<> SocketDriver::add_flow(UniqueFd fd, bool connecting) {
  auto flow = std::make_unique<Flow>();
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (streams_) {
    FSBL_ASSIGN(flow->stream, streams_->make());
    flow->backlog.allocate(kWireBuffer);
    flow->carry.reserve(kCarryBytes);
  }
  const auto id = static_cast<FlowId>(flows_.size());
  flow->fd = std::move(fd);
  if (!watch(*flow, id)) return fault_errno("watch a socket", errno);
  flow->state = connecting ? Flow::State::connecting : Flow::State::handshaking;
  flows_.push_back(std::move(flow));
  if (!connecting) advance_handshake(id);
  return {};
}

// What the socket has at that moment is told as an edge.
bool SocketDriver::watch(Flow& flow, FlowId id) noexcept {
  epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | static_cast<uint32_t>(EPOLLET), {.u32 = id}};
  flow.watched = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, flow.fd.get(), &event) == 0;
  return flow.watched;
}

void SocketDriver::accept_flows() noexcept {
  while (flows_.size() < expected_flows_) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return;
    if (!add_flow(std::move(fd), false)) return;
  }
  listener_.reset();  // also leaves epoll; later connections are refused by the kernel
}

void SocketDriver::push(FlowId id, EventKind kind) noexcept {
  if (queue_.size() < queue_.capacity()) queue_.push_back({id, kind});
}

void SocketDriver::make_ready(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  flow.readable = true;
  if (flow.in_ready) return;
  flow.in_ready = true;
  ready_.push_back(id);
}

void SocketDriver::die(FlowId id, const char* what, int error_number) noexcept {
  Flow& flow = *flows_[id];
  if (flow.state == Flow::State::dead) return;
  if (flow.stream && flow.state == Flow::State::open && error_number != 0) {
    // The peer's alert may still lie in the receive queue: it says why.
    const size_t before = carry_to_front(flow);
    if (const ssize_t got = ::recv(flow.fd.get(), wire_in_.data() + before, kReceiveBytes, MSG_DONTWAIT); got > 0) {
      WireOut out{control_.get(), 0, kControlBytes};
      size_t taken = 0;
      pieces_.clear();
      flow.stream->open(std::span(wire_in_).first(before + static_cast<size_t>(got)), taken, pieces_, out);
      pieces_.clear();
    }
  }
  flow.state = Flow::State::dead;
  flow.failed_at = what;
  flow.failed_errno = error_number;
  flow.pending = {};
  flow.readable = false;
  std::erase(sent_, id);  // the error tells of the buffer too
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, flow.fd.get(), nullptr);
  ::shutdown(flow.fd.get(), SHUT_RDWR);
  push(id, EventKind::error);
}

void SocketDriver::on_socket_event(FlowId id, uint32_t mask) noexcept {
  Flow& flow = *flows_[id];
  if (flow.state == Flow::State::dead) return;
  if (flow.state == Flow::State::connecting) {
    int error_number = 0;
    socklen_t size = sizeof error_number;
    getsockopt(flow.fd.get(), SOL_SOCKET, SO_ERROR, &error_number, &size);
    if (error_number != 0) return die(id, "connect", error_number);
    if (!(mask & EPOLLOUT)) return;
    flow.state = Flow::State::handshaking;
  }
  if (mask & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) flow.hang_up = true;
  if (flow.state == Flow::State::handshaking) return advance_handshake(id);
  if ((mask & EPOLLOUT) && flow.sending()) continue_sending(id);
  if (mask & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) make_ready(id);
}

void SocketDriver::advance_handshake(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (!flow.stream) {
    flow.state = Flow::State::open;
    push(id, EventKind::established);
    return make_ready(id);
  }
  for (;;) {
    const ssize_t got = ::recv(flow.fd.get(), wire_in_.data(), kReceiveBytes, MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN) return die(id, "handshake", errno);
    if (got > 0) flow.wire_in += static_cast<uint64_t>(got);
    WireIn in{wire_in_.data(), got > 0 ? static_cast<size_t>(got) : 0};
    WireOut out{control_.get(), 0, kControlBytes};
    const Stream::State state = flow.stream->handshake(in, out);
    if (out.size && !send_control(flow, {out.data, out.size})) return die(id, "handshake", flow.failed_errno);
    if (state == Stream::State::failed) return die(id, "handshake", 0);
    if (state == Stream::State::open) {
      flow.state = Flow::State::open;
      push(id, EventKind::established);
      flow.carry.assign(in.data, in.data + in.size);
      flow.carry_is_news = in.size > 0;
      return make_ready(id);
    }
    if (got == 0) return die(id, "handshake: peer closed the connection", 0);
    if (got < 0) return;
  }
}

// With one flow the wait is recv() itself. True: something arrived or the flow ended.
bool SocketDriver::wait_in_recv(Nanos deadline) noexcept {
  Flow& flow = *flows_[0];
  if (!flow.blocking && !busy_) {
    timeval slice{0, kRecvSlice / 1000};
    setsockopt(flow.fd.get(), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    fcntl(flow.fd.get(), F_SETFL, fcntl(flow.fd.get(), F_GETFL) & ~O_NONBLOCK);
    flow.blocking = true;
  }
  if (flow.wire_in > kStreaming && !flow.lowat_set && !busy_ && context_.config.load.shape == Shape::stream) {
    setsockopt(flow.fd.get(), SOL_SOCKET, SO_RCVLOWAT, &kStreamWakeUp, sizeof kStreamWakeUp);
    flow.lowat_set = true;
  }
  // A socket that epoll watches costs a callback for each arrival, seen by nobody here.
  if (flow.watched && ++flow.waits_in_recv == kUnwatch)
    flow.watched = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, flow.fd.get(), nullptr) != 0;
  const size_t before = carry_to_front(flow);
  for (;;) {
    const ssize_t got = ::recv(flow.fd.get(), wire_in_.data() + before, kReceiveBytes, busy_ ? MSG_DONTWAIT : 0);
    if (got > 0) {
      received_ = static_cast<size_t>(got);
      received_flow_ = 0;
      flow.wire_in += received_;
      received_ += before;
      flow.carry.clear();
      make_ready(0);
      return true;
    }
    if (before > 0) flow.carry.assign(wire_in_.begin(), wire_in_.begin() + static_cast<ptrdiff_t>(before));
    if (got == 0) {
      flow.hang_up = true;
      make_ready(0);
      return true;
    }
    if (errno != EAGAIN && errno != EINTR) {
      die(0, "receive", errno);
      return true;
    }
    const Nanos left = deadline - mono_now_ns();
    if (left <= 0 || (!busy_ && left < kRecvSlice)) return false;
  }
}

// Takes what epoll has, waiting at most `wait` for it.
void SocketDriver::look(Nanos wait) noexcept {
  unlooked_ = 0;
  if (!flows_.empty() && flows_[0]->state != Flow::State::dead) {
    flows_[0]->waits_in_recv = 0;
    if (!flows_[0]->watched && !watch(*flows_[0], 0)) die(0, "watch", errno);
  }
  epoll_event found[64];
  const timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
  const int count = epoll_pwait2(epoll_.get(), found, 64, &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    if (found[i].data.u32 == kListener) accept_flows();
    else on_socket_event(found[i].data.u32, found[i].events);
  }
}

void SocketDriver::drop_drained() noexcept {
  size_t kept = 0;
  for (FlowId id : ready_) {
    if (flows_[id]->to_announce()) ready_[kept++] = id;
    else flows_[id]->in_ready = false;
  }
  ready_.resize(kept);
}

// Queued events first; then buffers that are free again, and the flows that may hold more without a new edge. These
// two share the room: either could fill it for ever.
size_t SocketDriver::announce(std::span<Event> events) noexcept {
  size_t n = std::min(queue_.size(), events.size());
  std::copy_n(queue_.begin(), n, events.begin());
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(n));
  const size_t room = events.size() - n;
  const size_t free = std::min(sent_.size(), room - std::min(room / 2, ready_.size()));
  for (size_t i = 0; i < free; ++i) events[n++] = {sent_[i], EventKind::sent};
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<ptrdiff_t>(free));
  size_t named = 0;
  while (named < ready_.size() && n < events.size()) {
    const FlowId id = ready_[named++];
    Flow& flow = *flows_[id];
    flow.closed_reported = flow.peer_closed;
    events[n++] = {id, flow.peer_closed ? EventKind::closed : EventKind::readable};
  }
  // Who was named stands behind those that found no room.
  std::rotate(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(named), ready_.end());
  return n;
}

size_t SocketDriver::poll(std::span<Event> events, Nanos deadline) noexcept {
  for (bool waited = false;; waited = true) {
    send_gathered();
    drop_drained();
    // A flow that always has more to read must not keep the others' news from being seen.
    const bool alone = flows_.size() == 1 && !listener_ && !flows_[0]->sending();
    // Nor may buffers to give back: where the kernel takes all that is gathered there is always one.
    if (!alone && queue_.empty() && (sent_.empty() ? !ready_.empty() : ++unlooked_ == kUnlooked)) look(0);
    if (const size_t n = announce(events); n > 0) return n;

    const Nanos left = deadline - mono_now_ns();
    if (waited && left <= 0) return 0;
    const bool wait_on_one = alone && flows_[0]->state == Flow::State::open && !flows_[0]->peer_closed &&
                             !flows_[0]->hang_up && (busy_ || left >= kRecvSlice);
    if (wait_on_one) {
      if (wait_in_recv(deadline)) continue;
      if (busy_) return 0;
    }
    look(busy_ ? 0 : std::max<Nanos>(0, deadline - mono_now_ns()));
  }
}

// What a flow left unopened goes to the front of wire_in_, before what is received next; returns its size.
size_t SocketDriver::carry_to_front(Flow& flow) noexcept {
  const size_t size = flow.carry.size();
  std::copy(flow.carry.begin(), flow.carry.end(), wire_in_.begin());
  flow.carry.clear();
  return size;
}

// Brings what is there to the front of wire_in_ and returns its size; 0: there is nothing now, or the flow ended.
size_t SocketDriver::receive(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (received_ > 0 && received_flow_ == id) {
    const size_t size = std::exchange(received_, 0);
    // Here the socket may or may not hold more. One flow: the next poll() asks recv() anyway; otherwise ask again.
    if (flows_.size() == 1 && size < kReceiveBytes) flow.readable = false;
    return size;
  }
  const size_t before = carry_to_front(flow);
  if (std::exchange(flow.carry_is_news, false)) return before;
  const ssize_t got = ::recv(flow.fd.get(), wire_in_.data() + before, kReceiveBytes, MSG_DONTWAIT);
  const int error_number = errno;
  if (got > 0) {
    flow.wire_in += static_cast<uint64_t>(got);
    // A short read drained the socket: the next edge tells of more. With a hang-up seen there is no further edge.
    if (static_cast<size_t>(got) < kReceiveBytes && !flow.hang_up) flow.readable = false;
    return before + static_cast<size_t>(got);
  }
  if (before > 0) flow.carry.assign(wire_in_.begin(), wire_in_.begin() + static_cast<ptrdiff_t>(before));
  if (got == 0 && flow.stream) {
    die(id, "closed without close_notify", 0);
  } else if (got == 0) {
    flow.peer_closed = true;
    make_ready(id);
  } else if (error_number == EAGAIN) {
    flow.readable = false;
  } else if (error_number != EINTR) {
    die(id, "receive", error_number);
  }
  return 0;
}

// Opens the records at the front of wire_in_ into pieces_; the beginning of one that isn't whole is carried on.
void SocketDriver::open_received(FlowId id, size_t size) noexcept {
  Flow& flow = *flows_[id];
  WireOut out{control_.get(), 0, kControlBytes};
  size_t taken = 0;
  const Opened opened = flow.stream->open(std::span(wire_in_).first(size), taken, pieces_, out);
  if (opened == Opened::ok) flow.carry.assign(wire_in_.begin() + static_cast<ptrdiff_t>(taken), wire_in_.begin() + static_cast<ptrdiff_t>(size));
  if (out.size && !send_control(flow, {out.data, out.size})) {
    die(id, "send", flow.failed_errno);  // which may have opened more over what was opened here
    pieces_.clear();
    return;
  }
  if (opened == Opened::failed) die(id, "receive", 0);
  if (opened == Opened::closed) {
    flow.peer_closed = true;
    make_ready(id);
  }
}

std::span<const std::span<const std::byte>> SocketDriver::peek(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  pieces_.clear();
  if (flow.gathered) send_gathered();  // an answer to what is opened now comes after it
  if (flow.state != Flow::State::open || flow.peer_closed) return {};
  const size_t size = receive(id);
  if (size == 0) return {};
  if (flow.stream) open_received(id, size);
  else pieces_.push_back(std::span(wire_in_).first(size));
  return pieces_;
}

WireOffsets SocketDriver::wire(FlowId id) const noexcept { return {flows_[id]->wire_out, flows_[id]->wire_in}; }

FlowReport SocketDriver::report(FlowId id) const {
  return flows_[id]->stream ? flows_[id]->stream->report() : FlowReport{};
}

Json SocketDriver::refusal(FlowId id) const {
  const Flow& flow = *flows_[id];
  if (!flow.stream || flow.state != Flow::State::dead) return nullptr;
  return flow.stream->refusal();
}

std::string SocketDriver::failure(FlowId id) const {
  const Flow& flow = *flows_[id];
  if (flow.state != Flow::State::dead) return {};
  std::string text = flow.failed_at;
  if (flow.failed_errno) text += ": " + errno_text(flow.failed_errno);
  if (flow.stream)
    if (const std::string why = flow.stream->error(); !why.empty()) text += ": " + why;
  return text;
}

Json SocketDriver::engine() const { return streams_ ? streams_->engines().facts() : Json(nullptr); }

int SocketDriver::socket(FlowId id) const { return flows_[id]->fd.get(); }

}  // namespace fsbl
