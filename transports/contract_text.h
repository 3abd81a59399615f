// For tests: random bytes that both ends know, and a sender of them in pieces of random size.
#pragma once
#include <algorithm>
#include <cstring>

#include "harness/core/random.h"
#include "transports/contract_pair.h"

namespace fsbl::contract {

// Every flow and direction sends another stretch of one random text, so that mixed-up flows are seen.
class Text {
 public:
  static constexpr size_t kPeriod = 1'299'709;  // prime
  static constexpr size_t kLongest = 1 << 20;
  Text() : bytes_(kPeriod + kLongest) {
    SplitMix64 random(7);
    for (size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = i < kPeriod ? static_cast<std::byte>(random.next() >> 56) : bytes_[i - kPeriod];
  }
  // At most kLongest bytes of what `sender` sends on `flow`, from `position` on.
  std::span<const std::byte> at(FlowId flow, Role sender, uint64_t position, size_t size) const {
    return {bytes_.data() + (uint64_t{flow} * 104729 + of(sender) * 611953 + position) % kPeriod, size};
  }
  // Empty when `received` is what `sender` sent first on `flow`.
  std::string difference(FlowId flow, Role sender, std::span<const std::byte> received) const {
    for (size_t at_byte = 0; at_byte < received.size();) {
      const size_t size = std::min(received.size() - at_byte, kLongest);
      const auto expected = at(flow, sender, at_byte, size);
      const auto different = std::mismatch(expected.begin(), expected.end(), received.begin() + static_cast<ptrdiff_t>(at_byte));
      if (different.first != expected.end())
        return "flow " + std::to_string(flow) + " differs at byte " +
               std::to_string(at_byte + static_cast<size_t>(different.first - expected.begin()));
      at_byte += size;
    }
    return {};
  }

 private:
  std::vector<std::byte> bytes_;
};

// Sends `total` bytes on every flow of one end. Each piece lies in a buffer of its own that is overwritten as soon as
// the driver says it is free: a driver that still needs it then sends wrong bytes.
class Sender {
 public:
  Sender(End& end, Role role, const Text& text, uint32_t flows, uint64_t total, uint64_t seed)
      : end_(end), role_(role), text_(text), total_(total), random_(seed), flows_(flows) {
    end.on_event = [this](const Event& event) {
      if (event.kind != EventKind::sent) return;
      Flow& flow = flows_[event.flow];
      unexpected_ += !flow.lent;
      flow.lent = false;
      scribble(flow);
    };
  }
  ~Sender() { end_.on_event = {}; }

  void push() {
    for (FlowId id = 0; id < flows_.size(); ++id) {
      Flow& flow = flows_[id];
      if (flow.lent || flow.position == total_) continue;
      const uint64_t size = std::min({random_size(), total_ - flow.position});
      const auto piece = text_.at(id, role_, flow.position, size);
      flow.buffer.assign(piece.begin(), piece.end());
      const Submit submitted = end_.driver().submit(id, flow.buffer);
      dead_ += submitted == Submit::dead;
      flow.position += size;
      flow.lent = submitted == Submit::pending;
      if (flow.lent) ++pending_;
      else scribble(flow);
    }
  }
  bool done() const {
    return std::all_of(flows_.begin(), flows_.end(),
                       [this](const Flow& flow) { return !flow.lent && flow.position == total_; });
  }
  unsigned unexpected_sent() const { return unexpected_; }
  unsigned dead() const { return dead_; }
  unsigned pending() const { return pending_; }

 private:
  struct Flow {
    std::vector<std::byte> buffer;
    uint64_t position = 0;
    bool lent = false;
  };
  static void scribble(Flow& flow) { std::memset(flow.buffer.data(), 0xee, flow.buffer.size()); }
  // 1 B to 1 MiB, every order of magnitude as likely; often around the record size.
  uint64_t random_size() {
    if (random_.below(4) == 0) return 16383 + random_.below(3);
    return 1 + random_.below(uint64_t{1} << random_.below(21));
  }

  End& end_;
  Role role_;
  const Text& text_;
  uint64_t total_;
  SplitMix64 random_;
  std::vector<Flow> flows_;
  unsigned unexpected_ = 0, dead_ = 0, pending_ = 0;
};

}  // namespace fsbl::contract
