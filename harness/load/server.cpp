#include "harness/load/server.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace fsbl {

ServerThread::ServerThread(Driver& driver, const LoadThreadConfig& config)
    : driver_(driver), config_(config), events_(64), window_(driver, reading_) {
  slots_.reserve(config.flows);
  writable_.reserve(config.flows);
  outcome_.planned = config.flows;
}

void ServerThread::fail(FlowId id, const std::string& why) {
  Slot& slot = slots_[id];
  if (slot.failed) return;
  slot.failed = true;
  ++ended_;
  if (accepting_) {
    if (const Json refusal = driver_.refusal(id); !refusal.is_null()) outcome_.refusals.push_back(refusal);
    else outcome_.failures.push_back(why);
  } else if (reading_.failures.size() < 16) {
    reading_.failures.push_back(fmt::format("server flow {}: {}", slot.flow.flow(), why));
  }
}

// Hands over what the flow wants to send, at most `turns` buffers; leaves the rest to `sent` and to writable_.
void ServerThread::send(FlowId id, int turns) noexcept {
  Slot& slot = slots_[id];
  if (slot.lent || slot.failed) return;
  for (; turns > 0; --turns) {
    const auto data = slot.flow.to_send();
    if (data.empty()) break;
    const uint64_t answered = slot.flow.answered();
    const Submit submitted = driver_.submit(id, data);
    if (submitted == Submit::dead) return;  // an error event follows
    const bool ready = slot.flow.ready_sent();
    if (ready) reading_.sent_bytes += data.size();
    slot.flow.took(data.size());
    if (!ready && slot.flow.ready_sent()) ++greeted_, reading_.sent_bytes += sizeof(Ready);
    const bool written = ready && config_.load.shape == Shape::stream;
    if (written) ++reading_.done;
    if (slot.flow.answered() != answered) {
      ++reading_.done;
      if (window_.inside()) ++reading_.window_requests;
    }
    if (submitted == Submit::pending) {
      slot.lent = true;
      return;
    }
  }
  const bool more = config_.load.shape == Shape::stream && config_.load.direction == Direction::down &&
                    !accepting_ && !slot.flow.to_send().empty();
  if (more && !slot.waiting) {
    slot.waiting = true;
    writable_.push_back(id);
  }
}

void ServerThread::handle(const Event& event) noexcept {
  while (slots_.size() <= event.flow) slots_.push_back({ServerFlow(*config_.pattern, config_.load)});
  Slot& slot = slots_[event.flow];
  switch (event.kind) {
    case EventKind::established:
      slot.open = true;
      break;
    case EventKind::readable: {
      const auto pieces = driver_.peek(event.flow);
      if (pieces.empty()) break;
      for (const auto piece : pieces) {
        reading_.received_bytes += piece.size();
        if (!slot.failed && !slot.flow.receive(piece)) fail(event.flow, std::string(slot.flow.error()));
      }
      send(event.flow, accepting_ ? 1 : 1024);
      break;
    }
    case EventKind::sent:
      slot.lent = false;
      if (!accepting_) send(event.flow, 16);  // the greeting is out; a stream begins with the round
      break;
    case EventKind::closed:
      slot.flow.peer_closed();
      break;
    case EventKind::error:
      fail(event.flow, driver_.failure(event.flow));
      break;
  }
  if (!slot.failed && slot.flow.ended() && !slot.lent && slot.open) {
    slot.open = false;
    ++ended_;
    driver_.finish(event.flow);
  }
}

ConnectOutcome ServerThread::accept(Nanos deadline) {
  // A greeting that is lent still needs a poll() to go out.
  const auto lends = [this] { return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.lent && !s.failed; }); };
  while ((greeted_ + ended_ < config_.flows || lends()) && mono_now_ns() < deadline) {
    const size_t n = driver_.poll(events_, std::min(deadline, mono_now_ns() + 100'000'000));
    for (size_t i = 0; i < n; ++i) handle(events_[i]);
  }
  accepting_ = false;
  outcome_.established = greeted_;
  for (FlowId id = 0; id < slots_.size(); ++id)
    if (const Json handshake = driver_.report(id).handshake; !handshake.is_null() && !slots_[id].failed)
      outcome_.handshakes.push_back(handshake);
  for (size_t i = slots_.size(); i < config_.flows; ++i) outcome_.failures.push_back("no connection in time");
  return outcome_;
}

// Everything that was sent is acknowledged (SIOCOUTQ counts from the oldest byte that is not).
bool ServerThread::drained() const noexcept {
  for (FlowId id = 0; id < slots_.size(); ++id) {
    int bytes = 0;
    if (!slots_[id].failed && ioctl(driver_.socket(id), SIOCOUTQ, &bytes) == 0 && bytes > 0) return false;
  }
  return true;
}

ThreadReading ServerThread::run(const Timeline& t) {
  for (FlowId id = 0; id < slots_.size(); ++id) send(id, 1);
  while (ended_ < slots_.size()) {
    const Nanos now = mono_now_ns();
    if (window_.phase() == Window::Phase::before && now >= t.warm_end) window_.open(now);
    if (window_.phase() == Window::Phase::inside && now >= t.measure_end) window_.close(now);
    if (now >= t.drain_limit) break;
    const Nanos boundary = now < t.warm_end ? t.warm_end : now < t.measure_end ? t.measure_end : t.drain_limit;
    const size_t n = driver_.poll(events_, writable_.empty() ? boundary : now);
    for (size_t i = 0; i < n; ++i) handle(events_[i]);
    const size_t writable = writable_.size();
    for (size_t i = 0; i < writable; ++i) {
      slots_[writable_[i]].waiting = false;
      send(writable_[i], writable == 1 ? 16 : 1);
    }
    writable_.erase(writable_.begin(), writable_.begin() + static_cast<ptrdiff_t>(writable));
  }
  if (window_.phase() == Window::Phase::before) window_.open(mono_now_ns());
  if (window_.inside()) window_.close(mono_now_ns());
  // What the kernel still holds has yet to pass the interface and the tunnel, whose counters are read after this.
  while (!drained() && mono_now_ns() < t.drain_limit) driver_.poll(events_, mono_now_ns() + 1'000'000);
  for (FlowId id = 0; id < slots_.size(); ++id) {
    add_flow_totals(driver_, id, reading_);
    reading_.outstanding += slots_[id].flow.outstanding();
    reading_.failed += slots_[id].failed;
  }
  reading_.planned = reading_.done + reading_.failed + reading_.outstanding;
  reading_.engine = driver_.engine();
  return std::move(reading_);
}

}  // namespace fsbl
