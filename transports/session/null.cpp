// Session `null`: no network. The client's driver answers itself with the server's own flow logic, so that what
// remains is the harness: a check of fsbl by fsbl, and the floor under every other number.
#include <algorithm>
#include <memory>
#include <vector>

#include "harness/load/server_flow.h"
#include "harness/transport/driver.h"
#include "transports/inert_side.h"

namespace fsbl {
namespace {

class NullDriver final : public Driver {
 public:
  explicit NullDriver(const DriverContext& context)
      : pattern_(context.secrets.value("pattern_seed", uint64_t{0})), load_(context.config.load) {}

  Expected<uint16_t> listen(uint32_t, uint16_t) override { return fault("session null", "has no server side"); }

  Expected<> open(uint32_t count, uint16_t) override {
    for (uint32_t i = 0; i < count; ++i) {
      flows_.push_back(std::make_unique<Flow>(pattern_, load_));
      queue_.push_back({static_cast<FlowId>(flows_.size() - 1), EventKind::established});
    }
    queue_.reserve(4 * flows_.size() + 64);
    return {};
  }

  Submit submit(FlowId id, std::span<const std::byte> data) noexcept override {
    Flow& flow = *flows_[id];
    flow.out += data.size();
    if (!flow.server.receive(data)) {
      push(id, EventKind::error);
      return Submit::dead;
    }
    if (!flow.server.to_send().empty()) announce(id);
    return Submit::sent;
  }

  size_t poll(std::span<Event> events, Nanos) noexcept override {
    const size_t n = std::min(events.size(), queue_.size());
    for (size_t i = 0; i < n; ++i) {
      if (queue_[i].kind == EventKind::readable) flows_[queue_[i].flow]->announced = false;
      events[i] = queue_[i];
    }
    // From the front at once: with many flows the queue is never empty, and its room is what was reserved.
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }

  std::span<const std::span<const std::byte>> peek(FlowId id) noexcept override {
    Flow& flow = *flows_[id];
    piece_ = flow.server.to_send();
    if (piece_.empty()) return {};
    flow.in += piece_.size();
    flow.server.took(piece_.size());
    if (!flow.server.to_send().empty()) announce(id);
    return {&piece_, 1};
  }

  void finish(FlowId id) noexcept override {
    flows_[id]->server.peer_closed();
    push(id, EventKind::closed);
  }

  WireOffsets wire(FlowId id) const noexcept override { return {flows_[id]->out, flows_[id]->in}; }
  uint32_t flows() const override { return static_cast<uint32_t>(flows_.size()); }
  FlowReport report(FlowId) const override { return {}; }
  Json refusal(FlowId) const override { return nullptr; }
  std::string failure(FlowId id) const override { return std::string(flows_[id]->server.error()); }

 private:
  struct Flow {
    Flow(const Pattern& pattern, const LoadConfig& load) : server(pattern, load) {}
    ServerFlow server;
    uint64_t out = 0, in = 0;
    bool announced = false;
  };
  void push(FlowId id, EventKind kind) noexcept {
    if (queue_.size() < queue_.capacity()) queue_.push_back({id, kind});
  }
  void announce(FlowId id) noexcept {
    if (flows_[id]->announced) return;
    flows_[id]->announced = true;
    push(id, EventKind::readable);
  }

  Pattern pattern_;
  std::span<const std::byte> piece_;
  LoadConfig load_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<Event> queue_;  // capacity reserved
};

}  // namespace

extern const SessionDescriptor session_null;
const SessionDescriptor session_null = {
    .name = "null",
    .summary = "no network: the harness measures itself",
    .in_process = true,
    .usable = usable_always,
    .make_side = make_inert_side,
    .make_driver = [](const DriverContext& context) -> Expected<std::unique_ptr<Driver>> {
      return std::make_unique<NullDriver>(context);
    },
};

}  // namespace fsbl
