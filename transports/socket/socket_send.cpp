// The sending half of the TCP driver: what submit() lends goes to the kernel, as it is or sealed into records.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/socket/socket_flow.h"

namespace fsbl {

// How many bytes the kernel took, 0 when it is full; -1: the flow died.
ssize_t SocketDriver::send_some(Flow& flow, std::span<const std::byte> bytes) noexcept {
  const ssize_t sent = ::send(flow.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == EAGAIN) return 0;
  if (sent < 0) flow.failed_errno = errno;
  else flow.wire_out += static_cast<uint64_t>(sent);
  return sent;
}

bool SocketDriver::send_plain(Flow& flow) noexcept {
  while (!flow.pending.empty()) {
    const ssize_t sent = send_some(flow, flow.pending);
    if (sent <= 0) return sent == 0;
    flow.pending = flow.pending.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool SocketDriver::send_backlog(Flow& flow) noexcept {
  if (flow.backlog.empty()) return true;
  const ssize_t sent = send_some(flow, flow.backlog.left());
  if (sent < 0) return false;
  flow.backlog.at += static_cast<size_t>(sent);
  if (flow.backlog.empty()) flow.backlog.clear();
  return true;
}

// Sends sealed bytes that lie in somebody else's memory; what the kernel doesn't take is copied to the backlog.
bool SocketDriver::send_control(Flow& flow, std::span<const std::byte> bytes) noexcept {
  if (flow.backlog.empty()) {
    const ssize_t sent = send_some(flow, bytes);
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  WireOut backlog = flow.backlog.out();
  backlog.put(bytes.data(), bytes.size());
  flow.backlog.end = backlog.size;
  if (backlog.overflow) flow.failed_errno = ENOBUFS;
  return !backlog.overflow;
}

// Sends all of `wire`; what the kernel doesn't take stays where it is: the buffer becomes the flow's backlog.
bool SocketDriver::send_wire(Flow& flow, WireBuffer& wire) noexcept {
  bool ok = true;
  if (wire.empty()) return true;
  if (flow.backlog.empty()) {
    const ssize_t sent = send_some(flow, wire.left());
    ok = sent >= 0;
    wire.at += ok ? static_cast<size_t>(sent) : 0;
    if (ok && !wire.empty()) std::swap(flow.backlog, wire);
  } else {
    ok = send_control(flow, wire.left());
  }
  wire.clear();
  return ok;
}

// Seals and sends pieces by turns. Where the engine works by itself the next piece is sealed while one is being sent.
bool SocketDriver::seal_and_send(Flow& flow) noexcept {
  RecordEngines& engines = streams_->engines();
  const bool overlaps = engines.overlaps();
  Sealing* under_way = nullptr;
  bool ok = true;
  const auto finish_and_send = [&](Sealing& sealing) {
    engines.finish(*sealing.batch);
    ok = ok && !flow.stream->failed();
    if (ok) ok = send_wire(flow, sealing.wire);
    sealing.wire.clear();
  };
  for (size_t turn = 0; under_way || (ok && !flow.pending.empty() && flow.backlog.empty()); turn ^= 1) {
    Sealing* next = nullptr;
    if (ok && !flow.pending.empty() && flow.backlog.empty()) {
      next = turns_[turn].get();
      WireOut out = next->wire.out();
      size_t taken = 0;
      ok = flow.stream->seal(flow.pending.first(std::min(flow.pending.size(), kSealPiece)), out, *next->batch, taken) &&
           !out.overflow;
      next->wire.end = out.size;
      flow.pending = flow.pending.subspan(taken);
      engines.start(*next->batch);
    }
    if (under_way) finish_and_send(*under_way);
    if (next && (!overlaps || !ok)) finish_and_send(*std::exchange(next, nullptr));
    under_way = next;
  }
  return ok;
}

// Moves pending plaintext towards the kernel until all is there or the kernel is full. False: the flow died.
bool SocketDriver::send_pending(Flow& flow) noexcept {
  if (!flow.stream) return send_plain(flow);
  if (!send_backlog(flow)) return false;
  return !flow.backlog.empty() || seal_and_send(flow);
}

// Adds one small record to those of other flows, to be sealed in one burst. False: there is a reason not to.
bool SocketDriver::gather(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (!streams_ || flows_.size() < 2 || flow.pending.size() > RecordEngine::kMaxRecordBytes || !flow.backlog.empty() ||
      flow.gathered || !streams_->engines().gathers())
    return false;
  if (gathering_->parts.size() == kGathered) send_gathered();
  if (flow.state != Flow::State::open) return false;
  WireOut out = gathering_->wire.out();
  const size_t at = out.size;
  size_t taken = 0;
  if (!flow.stream->seal(flow.pending, out, *gathering_->batch, taken)) return false;
  gathering_->wire.end = out.size;
  if (out.size > at) gathering_->parts.push_back({id, at, out.size - at});
  flow.gathered = out.size > at;
  flow.pending = flow.pending.subspan(taken);
  return flow.gathered && flow.pending.empty();
}

void SocketDriver::send_gathered() noexcept {
  if (!gathering_ || gathering_->parts.empty()) return;
  RecordEngines& engines = streams_->engines();
  engines.start(*gathering_->batch);
  engines.finish(*gathering_->batch);
  for (const auto& [id, at, bytes] : gathering_->parts) {
    Flow& flow = *flows_[id];
    flow.gathered = false;
    if (flow.state != Flow::State::open) continue;
    if (flow.stream->failed() || !send_control(flow, {gathering_->wire.bytes.get() + at, bytes})) {
      die(id, "send", flow.failed_errno);
      continue;
    }
    if (!flow.sending()) settle_sent(id);
  }
  gathering_->parts.clear();
  gathering_->wire.clear();
}

// Everything that was lent is with the kernel.
void SocketDriver::settle_sent(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (std::exchange(flow.lent, false)) sent_.push_back(id);
  if (flow.finish_asked) close_direction(flow);
}

Submit SocketDriver::submit(FlowId id, std::span<const std::byte> data) noexcept {
  Flow& flow = *flows_[id];
  if (flow.state != Flow::State::open || flow.finish_asked) return Submit::dead;
  flow.pending = data;
  if (gather(id)) {
    flow.lent = true;
    return Submit::pending;
  }
  if (flow.gathered) send_gathered();
  if (flow.state != Flow::State::open) return Submit::dead;
  if (!send_pending(flow)) {
    die(id, "send", flow.failed_errno);
    return Submit::dead;
  }
  flow.lent = flow.sending();
  return flow.lent ? Submit::pending : Submit::sent;
}

void SocketDriver::continue_sending(FlowId id) noexcept {
  Flow& flow = *flows_[id];
  if (flow.gathered) send_gathered();
  if (flow.state != Flow::State::open) return;
  if (!send_pending(flow)) return die(id, "send", flow.failed_errno);
  if (!flow.sending()) settle_sent(id);
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
      WireOut out{control_.get(), 0, kControlBytes};
      flow.stream->close(out);
      if (!send_control(flow, {out.data, out.size})) return;
    }
  }
  if (!flow.sending()) ::shutdown(flow.fd.get(), SHUT_WR);
}

}  // namespace fsbl
