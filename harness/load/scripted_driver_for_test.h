// For tests: a driver without a network. It answers with ServerFlow, when and as far as the test lets it.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "harness/load/server_flow.h"
#include "harness/transport/driver.h"

namespace fsbl {

class ScriptedDriver final : public Driver {
 public:
  ScriptedDriver(const Pattern& pattern, const LoadConfig& load) : pattern_(pattern), load_(load) {}

  // --- the script ---
  std::function<bool(FlowId)> answers = [](FlowId) { return true; };  // asked at each poll, of a flow with an answer
  std::function<bool(FlowId)> takes = [](FlowId) { return true; };    // false: submit() is pending until it is true
  std::function<bool(FlowId)> closes = [](FlowId) { return true; };   // false: finish() is never answered
  std::function<bool(FlowId)> accepts = [](FlowId) { return true; };  // false: an error instead of `established`
  std::function<void(std::vector<std::byte>&)> spoils = [](std::vector<std::byte>&) {};  // what is about to be read
  Json refused;                                                       // of every flow that was not accepted
  void kill(FlowId id) { flows_[id].dead = true, events_.push_back({id, EventKind::error}); }
  void close(FlowId id) { events_.push_back({id, EventKind::closed}); }

  // --- Driver ---
  Expected<uint16_t> listen(uint32_t, uint16_t) override { return fault("listen", "a client's driver"); }
  Expected<> open(uint32_t count, uint16_t) override {
    for (uint32_t i = 0; i < count; ++i) {
      const auto id = static_cast<FlowId>(flows_.size());
      flows_.emplace_back(pattern_, load_);
      if (accepts(id)) events_.push_back({id, EventKind::established});
      else kill(id);
    }
    return {};
  }
  Submit submit(FlowId id, std::span<const std::byte> data) noexcept override {
    Flow& flow = flows_[id];
    if (flow.dead || flow.finished) return Submit::dead;
    if (takes(id)) {
      flow.server.receive(data);
      return Submit::sent;
    }
    flow.lent = data;
    return Submit::pending;
  }
  size_t poll(std::span<Event> events, Nanos deadline) noexcept override {
    for (;;) {
      for (FlowId id = 0; id < flows_.size(); ++id) {
        Flow& flow = flows_[id];
        if (flow.dead) continue;
        if (!flow.lent.empty() && takes(id)) {
          flow.server.receive(std::exchange(flow.lent, {}));
          events_.push_back({id, EventKind::sent});
        }
        if (!flow.server.to_send().empty() && answers(id)) events_.push_back({id, EventKind::readable});
        if (flow.finished && !flow.closed && closes(id)) {
          flow.closed = true;
          events_.push_back({id, EventKind::closed});
        }
      }
      size_t n = 0;
      for (; n < events.size() && !events_.empty(); events_.pop_front()) events[n++] = events_.front();
      const Nanos left = deadline - mono_now_ns();
      if (n > 0 || left <= 0) return n;
      const timespec nap{0, std::min<Nanos>(left, 1'000'000)};
      nanosleep(&nap, nullptr);
    }
  }
  std::span<const std::span<const std::byte>> peek(FlowId id) noexcept override {
    const auto data = flows_[id].server.to_send();
    if (data.empty()) return {};
    lent_.assign(data.begin(), data.end());
    flows_[id].server.took(data.size());
    spoils(lent_);
    // In two pieces, as a record engine lends what it opened.
    const auto all = std::span<const std::byte>(lent_);
    const size_t half = all.size() / 2;
    pieces_.clear();
    for (const auto piece : {all.first(half), all.subspan(half)})
      if (!piece.empty()) pieces_.push_back(piece);
    return pieces_;
  }
  void finish(FlowId id) noexcept override {
    flows_[id].finished = true;
    flows_[id].server.peer_closed();
  }
  WireOffsets wire(FlowId) const noexcept override { return {}; }
  uint32_t flows() const override { return static_cast<uint32_t>(flows_.size()); }
  FlowReport report(FlowId) const override { return {}; }
  Json refusal(FlowId id) const override { return flows_[id].dead ? refused : Json(); }
  std::string failure(FlowId id) const override { return flows_[id].dead ? "killed by the test" : ""; }

 private:
  struct Flow {
    Flow(const Pattern& pattern, const LoadConfig& load) : server(pattern, load) {}
    ServerFlow server;
    std::span<const std::byte> lent;
    bool dead = false, finished = false, closed = false;
  };
  const Pattern& pattern_;
  LoadConfig load_;
  std::deque<Flow> flows_;
  std::deque<Event> events_;
  std::vector<std::byte> lent_;
  std::vector<std::span<const std::byte>> pieces_;
};

}  // namespace fsbl
