#include "bench/handshakes/handshake_load.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "harness/transport/registry.h"

namespace fsbl::bench {
namespace {

constexpr Nanos kSilence = 5'000'000'000;  // no event for so long, with flows under way: the server hangs

Nanos thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

class HandshakeRun {
 public:
  explicit HandshakeRun(const HandshakeLoad& load)
      : load_(load), session_(find_session(load.context.config.transport.session)), free_(load.at_a_time) {
    std::iota(free_.begin(), free_.end(), 0u);
  }
  Expected<HandshakeReading> run();

 private:
  Expected<> next_driver();
  Expected<> open_more();
  void handle(const Event& event);
  void settle(FlowId id);
  void fail(FlowId id, const std::string& why);
  void look_at_clock(Nanos now);

  const HandshakeLoad& load_;
  const SessionDescriptor* session_;
  std::unique_ptr<Driver> driver_;
  std::vector<bool> settled_;      // of this driver's flows
  std::vector<uint32_t> place_of_; // likewise: which place a flow takes
  std::vector<uint32_t> free_;     // places without a flow
  uint64_t accepted_ = 0;       // ever
  Nanos window_from_ = 0, cpu_from_ = 0;
  bool inside_ = false, over_ = false;
  HandshakeReading reading_;
};

// The driver before goes first: its sockets are closed by then, what is left is their numbers.
Expected<> HandshakeRun::next_driver() {
  driver_.reset();
  FSBL_ASSIGN(driver_, session_->make_driver(load_.context));
  settled_.assign(load_.per_driver, false);
  place_of_.clear();
  return {};
}

Expected<> HandshakeRun::open_more() {
  const bool all_free = free_.size() == load_.at_a_time;
  if (driver_->flows() == load_.per_driver && all_free) FSBL_TRY(next_driver());
  while (!free_.empty() && driver_->flows() < load_.per_driver) {
    const uint32_t place = free_.back();
    free_.pop_back();
    place_of_.push_back(place);
    FSBL_TRY(driver_->open(1, load_.ports[place % load_.ports.size()]));
  }
  return {};
}

void HandshakeRun::settle(FlowId id) {
  settled_[id] = true;
  free_.push_back(place_of_[id]);
}

void HandshakeRun::fail(FlowId id, const std::string& why) {
  if (reading_.failed++ == 0) reading_.first_failure = why;
  settle(id);
}

void HandshakeRun::handle(const Event& event) {
  const FlowId id = event.flow;
  if (settled_[id]) return;
  bool accepted = false;
  switch (event.kind) {
    case EventKind::established:
      if (load_.until == Until::closed) driver_->finish(id);
      break;
    case EventKind::readable:
      for (const auto piece : driver_->peek(id)) accepted |= !piece.empty();
      if (load_.until == Until::closed) accepted = false;
      else if (accepted) driver_->finish(id);
      break;
    case EventKind::closed:
      if (load_.until == Until::closed) accepted = true;  // its close_notify came under the connection's keys
      else return fail(id, "the server closed before its first byte");
      break;
    case EventKind::error: {
      const Json refusal = driver_->refusal(id);
      if (refusal.is_null()) return fail(id, driver_->failure(id));
      return fail(id, "refused: " + refusal.value("reason", std::string("?")));
    }
    case EventKind::sent:
      break;
  }
  if (!accepted) return;
  if (accepted_++ == 0) reading_.sample = driver_->report(id).handshake;
  if (inside_) ++reading_.handshakes;
  settle(id);
}

void HandshakeRun::look_at_clock(Nanos now) {
  if (!inside_ && !over_ && now >= window_from_) {
    inside_ = true;
    window_from_ = now;
    cpu_from_ = thread_cpu_ns();
  }
  if (inside_ && now >= window_from_ + load_.measure) {
    inside_ = false;
    over_ = true;
    reading_.window = now - window_from_;
    reading_.cpu = thread_cpu_ns() - cpu_from_;
  }
}

Expected<HandshakeReading> HandshakeRun::run() {
  if (load_.ports.empty() || load_.at_a_time == 0 || load_.per_driver == 0)
    return bad_input("handshakes", "no port, or no flow");
  if (!session_) return unavailable("session " + load_.context.config.transport.session, "not in this build");
  FSBL_TRY(next_driver());
  std::array<Event, 64> events;
  Nanos last_event = mono_now_ns();
  window_from_ = last_event + load_.warm_up;
  while (!over_) {
    FSBL_TRY(open_more());
    const Nanos now = mono_now_ns();
    look_at_clock(now);
    const size_t n = driver_->poll(events, now + 50'000'000);
    for (size_t i = 0; i < n; ++i) handle(events[i]);
    if (n > 0) last_event = now;
    else if (now - last_event > kSilence) return fault("handshakes", "the server is silent for 5 s", "look at its log");
    if (accepted_ == 0 && reading_.failed > load_.at_a_time)
      return fault("handshakes", "none was accepted: " + reading_.first_failure,
                   "check certificates, address and port");
  }
  if (reading_.handshakes == 0)
    return fault("handshakes", "none came to its end inside the window", "use a longer window, or another --until");
  return std::move(reading_);
}

}  // namespace

Expected<HandshakeReading> run_handshakes(const HandshakeLoad& load) { return HandshakeRun(load).run(); }

}  // namespace fsbl::bench
