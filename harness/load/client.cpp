#include "harness/load/client.h"

#include <fmt/format.h>

namespace fsbl {

ClientThread::ClientThread(Driver& driver, const LoadThreadConfig& config)
    : driver_(driver), config_(config), events_(64), window_(driver, reading_) {
  slots_.resize(config.flows);
  writable_.reserve(config.flows);
  outcome_.planned = config.flows;
  for (uint32_t i = 0; i < config.flows; ++i) {
    Slot& slot = slots_[i];
    const uint32_t flow = config.first_flow + i;
    slot.hello.flow = flow;
    slot.hello.canary = config.canary;
    slot.position = Pattern::start_of(flow, Role::client);
    slot.verifier = Verifier(*config.pattern, Pattern::start_of(flow, Role::server), config.load.verify);
  }
}

void ClientThread::fail(FlowId id, const std::string& why) {
  Slot& slot = slots_[id];
  if (slot.state == State::failed || slot.state == State::closed) return;
  if (!settled(slot)) ++settled_;
  if (!connecting_) {
    // A request that is out was planned; a stream's write counts as done until it turns out that it is not.
    const bool stream = config_.load.shape == Shape::stream, busy = slot.state == State::busy;
    ++reading_.failed;
    if (stream && slot.lent) --reading_.done;
    else if (stream || !busy) ++reading_.planned;
    if (busy && !stream) --busy_;
  }
  slot.state = State::failed;
  ++ended_;
  if (connecting_) {
    if (Json refusal = driver_.refusal(id); !refusal.is_null()) outcome_.refusals.push_back(std::move(refusal));
    else outcome_.failures.push_back(why);
  } else if (reading_.failures.size() < 16) {
    reading_.failures.push_back(fmt::format("client flow {}: {}", slot.hello.flow, why));
  }
}

void ClientThread::greet(FlowId id) noexcept {
  Slot& slot = slots_[id];
  slot.state = State::greeting;
  const Submit submitted = driver_.submit(id, bytes_of(slot.hello));
  slot.lent = submitted == Submit::pending;
  if (submitted != Submit::dead) reading_.sent_bytes += sizeof(Hello);
}

// Sends what is left of the current request, or more of the stream: at most `turns` buffers.
void ClientThread::push(FlowId id, int turns) noexcept {
  Slot& slot = slots_[id];
  if (slot.lent || slot.state != State::busy) return;
  const bool stream = config_.load.shape == Shape::stream;
  for (; turns > 0; --turns) {
    if (stream ? !issuing_ || config_.load.direction == Direction::down : slot.request_left == 0) return;
    const auto data = config_.pattern->at(slot.position, stream ? config_.load.payload_bytes : slot.request_left);
    const Submit submitted = driver_.submit(id, data);
    if (submitted == Submit::dead) return;  // an error event follows
    slot.position += data.size();
    reading_.sent_bytes += data.size();
    if (!stream) slot.request_left -= data.size();
    else ++reading_.planned, ++reading_.done;
    if (submitted == Submit::pending) {
      slot.lent = true;
      return;
    }
  }
  if (!slot.waiting) {
    slot.waiting = true;
    writable_.push_back(id);
  }
}

void ClientThread::next_request(FlowId id) noexcept {
  Slot& slot = slots_[id];
  if (slot.state != State::busy) ++busy_;
  slot.state = State::busy;
  slot.request_left = config_.load.payload_bytes;
  slot.reply_left = config_.load.reply_bytes;
  ++reading_.planned;
  slot.sent_at = mono_now_ns();
  push(id, 1 << 20);
}

void ClientThread::take(FlowId id, std::span<const std::byte> data) noexcept {
  Slot& slot = slots_[id];
  reading_.received_bytes += data.size();
  if (slot.state == State::greeting) {
    const size_t n = std::min(data.size(), sizeof(Ready) - slot.ready_bytes);
    std::memcpy(reinterpret_cast<std::byte*>(&slot.ready) + slot.ready_bytes, data.data(), n);
    slot.ready_bytes += n;
    data = data.subspan(n);
    if (slot.ready_bytes < sizeof(Ready)) return;
    if (!is_valid(slot.ready) || slot.ready.flow != slot.hello.flow || slot.ready.canary != slot.hello.canary)
      return fail(id, "the server's greeting is not the one expected");
    slot.state = State::idle;
    ++settled_;
    ++outcome_.established;
    if (data.empty()) return;
  }
  if (!slot.verifier.take(data)) return fail(id, "received bytes differ from those sent");
  if (config_.load.shape == Shape::stream) return;
  if (data.size() > slot.reply_left || slot.state != State::busy) return fail(id, "more reply bytes than asked for");
  slot.reply_left -= data.size();
  if (slot.reply_left > 0) return;
  const Nanos done_at = mono_now_ns();
  ++reading_.done;
  // A request belongs to the window in which it was sent, however late its reply: leaving the slow ones out at the
  // window's end would flatter the tail.
  const bool sent_inside = window_.phase() != Window::Phase::before && slot.sent_at >= reading_.window_from &&
                           (window_.inside() || slot.sent_at < reading_.window_to);
  if (sent_inside) reading_.latency.record(done_at - slot.sent_at);
  if (window_.inside()) ++reading_.window_requests;
  if (issuing_) return next_request(id);
  slot.state = State::idle;
  --busy_;
}

void ClientThread::handle(const Event& event) noexcept {
  Slot& slot = slots_[event.flow];
  switch (event.kind) {
    case EventKind::established:
      greet(event.flow);
      break;
    case EventKind::readable:
      for (const auto piece : driver_.peek(event.flow)) take(event.flow, piece);
      break;
    case EventKind::sent:
      slot.lent = false;
      if (slot.state == State::closing) driver_.finish(event.flow);
      else push(event.flow, config_.load.shape == Shape::stream ? 4 : 1 << 20);
      break;
    case EventKind::closed:
      if (slot.state == State::closing) {
        slot.state = State::closed;
        ++ended_;
      } else {
        fail(event.flow, "the server closed the connection");
      }
      break;
    case EventKind::error:
      fail(event.flow, driver_.failure(event.flow));
      break;
  }
}

void ClientThread::connect_some(uint32_t count, uint16_t port, Nanos deadline) {
  const size_t target = settled_ + count;
  if (auto opened = driver_.open(count, port); !opened) {
    outcome_.failures.push_back(opened.error().message());
    return;
  }
  while (settled_ < target && mono_now_ns() < deadline) {
    const size_t n = driver_.poll(events_, std::min(deadline, mono_now_ns() + 100'000'000));
    for (size_t i = 0; i < n; ++i) handle(events_[i]);
  }
}

ConnectOutcome ClientThread::connect(uint16_t port, Nanos deadline, bool first_alone) {
  uint32_t left = config_.flows;
  if (first_alone && left > 1) {
    connect_some(1, port, deadline);
    --left;
  }
  connect_some(left, port, deadline);
  connecting_ = false;
  for (FlowId id = 0; id < driver_.flows(); ++id) {
    if (!settled(slots_[id])) outcome_.failures.push_back("no answer in time");
    if (Json handshake = driver_.report(id).handshake; !handshake.is_null() && slots_[id].state == State::idle)
      outcome_.handshakes.push_back(std::move(handshake));
  }
  return outcome_;
}

void ClientThread::finish_all() noexcept {
  for (FlowId id = 0; id < slots_.size(); ++id) {
    Slot& slot = slots_[id];
    if (slot.state == State::failed || slot.state == State::closed) continue;
    slot.state = State::closing;
    if (!slot.lent) driver_.finish(id);  // otherwise once the lent buffer is back
  }
}

ThreadReading ClientThread::run(const Timeline& timeline) {
  Timeline t = timeline;
  const bool stream = config_.load.shape == Shape::stream;
  const timespec start{t.start / 1'000'000'000, t.start % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, nullptr);
  issuing_ = true;
  for (FlowId id = 0; id < slots_.size(); ++id) {
    if (slots_[id].state != State::idle) continue;
    if (!stream) {
      next_request(id);
    } else {
      slots_[id].state = State::busy;
      push(id, 1);
    }
  }
  bool finishing = false;
  while (ended_ < slots_.size()) {
    const Nanos now = mono_now_ns();
    if (window_.phase() == Window::Phase::before && now >= t.warm_end) window_.open(now);
    if (window_.inside() && now >= t.measure_end) {
      const bool enough = stream || reading_.latency.count() >= t.min_samples || now >= t.measure_limit;
      if (enough) {
        t.stop += now - t.measure_end;
        window_.close(now);
      } else {
        t.measure_end = std::min(t.measure_limit, now + 50'000'000);
        t.stop = std::max(t.stop, t.measure_end + (timeline.stop - timeline.measure_end));
      }
    }
    const bool stopped = now >= t.stop && window_.phase() == Window::Phase::after;
    if (stopped) issuing_ = false;
    if (stopped && !finishing && (stream || busy_ == 0)) {
      finishing = true;
      finish_all();
      continue;
    }
    if (now >= t.drain_limit) break;
    const Nanos boundary = now < t.warm_end ? t.warm_end : now < t.measure_end ? t.measure_end : now < t.stop ? t.stop : t.drain_limit;
    const size_t n = driver_.poll(events_, writable_.empty() ? boundary : now);
    for (size_t i = 0; i < n; ++i) handle(events_[i]);
    const size_t writable = writable_.size();
    for (size_t i = 0; i < writable; ++i) {
      slots_[writable_[i]].waiting = false;
      push(writable_[i], writable == 1 ? 16 : 1);
    }
    writable_.erase(writable_.begin(), writable_.begin() + static_cast<ptrdiff_t>(writable));
  }
  if (window_.phase() == Window::Phase::before) window_.open(mono_now_ns());
  if (window_.inside()) window_.close(mono_now_ns());
  for (FlowId id = 0; id < slots_.size(); ++id) {
    const Slot& slot = slots_[id];
    if (slot.state == State::busy || slot.state == State::closing) {
      // A stream that never drained has its last write outstanding; a request that was answered is done.
      if (stream || slot.state == State::busy) ++reading_.outstanding;
      if (stream && reading_.done > 0 && config_.load.direction == Direction::up) --reading_.done;
      else if (stream) ++reading_.planned;
      if (reading_.failures.size() < 16)
        reading_.failures.push_back(fmt::format("client flow {}: not drained within the time limit", slot.hello.flow));
    }
    add_flow_totals(driver_, id, reading_);
  }
  reading_.engine = driver_.engine();
  return std::move(reading_);
}

}  // namespace fsbl
