// The sending half of the TCP driver: what submit() lends goes to the kernel, as it is or sealed into records.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/socket/socket_flow.h"

namespace fsbl {

// Sends sealed bytes; what the kernel doesn't take now goes to the flow's backlog.
bool SocketDriver::send_sealed(Flow& flow, std::span<const std::byte> bytes) noexcept {
  if (flow.backlog_at == flow.backlog.size()) {
    flow.backlog.clear();
    flow.backlog_at = 0;
    const ssize_t sent = ::send(flow.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      flow.failed_errno = errno;
      return false;
    }
    if (sent > 0) {
      flow.wire_out += static_cast<uint64_t>(sent);
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
  }
  if (flow.backlog.size() + bytes.size() > flow.backlog.capacity()) {
    flow.failed_errno = ENOBUFS;
    return false;
  }
  flow.backlog.insert(flow.backlog.end(), bytes.begin(), bytes.end());
  return true;
}

// Moves pending plaintext towards the kernel until all is there or the kernel is full. False: the flow died.
bool SocketDriver::seal_and_send(Flow& flow) noexcept {
  if (!flow.stream) {
    while (!flow.pending.empty()) {
      const ssize_t sent = ::send(flow.fd.get(), flow.pending.data(), flow.pending.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) return true;
      if (sent < 0) {
        flow.failed_errno = errno;
        return false;
      }
      flow.wire_out += static_cast<uint64_t>(sent);
      flow.pending = flow.pending.subspan(static_cast<size_t>(sent));
    }
    return true;
  }
  if (flow.backlog_at < flow.backlog.size()) {
    const size_t left = flow.backlog.size() - flow.backlog_at;
    const ssize_t sent = ::send(flow.fd.get(), flow.backlog.data() + flow.backlog_at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0) {
      flow.failed_errno = errno;
      return false;
    }
    flow.wire_out += static_cast<uint64_t>(sent);
    flow.backlog_at += static_cast<size_t>(sent);
    if (flow.backlog_at < flow.backlog.size()) return true;
    flow.backlog.clear();
    flow.backlog_at = 0;
  }
  while (!flow.pending.empty() && flow.backlog.empty()) {
    const auto piece = flow.pending.first(std::min(flow.pending.size(), kSealPiece));
    WireOut out{wire_out_.data(), 0, wire_out_.size()};
    if (!flow.stream->seal(piece, out) || out.overflow) return false;
    flow.pending = flow.pending.subspan(piece.size());
    if (!send_sealed(flow, {out.data, out.size})) return false;
  }
  return true;
}

Submit SocketDriver::submit(FlowId id, std::span<const std::byte> data) noexcept {
  Flow& flow = *flows_[id];
  if (flow.state != Flow::State::open || flow.finish_asked) return Submit::dead;
  flow.pending = data;
  if (!seal_and_send(flow)) {
    die(id, "send", flow.failed_errno);
    return Submit::dead;
  }
  flow.lent = flow.sending();
  return flow.lent ? Submit::pending : Submit::sent;
}

void SocketDriver::continue_sending(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (!seal_and_send(flow)) return die(id, "send", flow.failed_errno);
  if (flow.sending()) return;
  if (std::exchange(flow.lent, false)) push(id, EventKind::sent);
  if (flow.finish_asked) close_direction(flow);
}

void SocketDriver::finish(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (flow.state != Flow::State::open || flow.finish_asked) return;
  flow.finish_asked = true;
  if (!flow.sending()) close_direction(flow);
}

void SocketDriver::close_direction(Flow& flow) noexcept {
  if (!flow.finished) {
    flow.finished = true;
    if (flow.stream) {
      WireOut out{wire_out_.data(), 0, wire_out_.size()};
      flow.stream->close(out);
      if (!send_sealed(flow, {out.data, out.size})) return;
    }
  }
  if (!flow.sending()) ::shutdown(flow.fd.get(), SHUT_WR);
}

}  // namespace fsbl
