// What payloads consist of: a seeded byte pattern with a prime period, so that any shift, swap or repetition of
// records, flows or rounds is seen by comparing. Both sides make it from the round's seed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "harness/core/random.h"
#include "harness/scenario/model.h"

namespace fsbl {

class Pattern {
 public:
  static constexpr size_t kPeriod = 65521;             // prime
  static constexpr size_t kMaxChunk = 256 << 10;       // the longest span that at() lends

  explicit Pattern(uint64_t seed) : bytes_(kPeriod + kMaxChunk) {
    SplitMix64 random(seed);
    for (size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = i < kPeriod ? static_cast<std::byte>(random.next() >> 56) : bytes_[i - kPeriod];
  }

  // Where a flow's bytes start in the pattern; the two directions differ.
  static uint64_t start_of(uint32_t flow, Role sender) {
    return (uint64_t{flow} * 7919 + (sender == Role::server ? 32749 : 0)) % kPeriod;
  }
  std::span<const std::byte> at(uint64_t position, uint64_t length) const noexcept {
    return {bytes_.data() + position % kPeriod, static_cast<size_t>(std::min<uint64_t>(length, kMaxChunk))};
  }
  bool equal(uint64_t position, std::span<const std::byte> data) const noexcept {
    while (!data.empty()) {
      const auto expected = at(position, data.size());
      if (std::memcmp(expected.data(), data.data(), expected.size()) != 0) return false;
      position += expected.size();
      data = data.subspan(expected.size());
    }
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

// Checks one direction of one flow. Sampled: the first and last 64 bytes of every read, and every 64th read whole.
class Verifier {
 public:
  Verifier() = default;
  Verifier(const Pattern& pattern, uint64_t start, Verify mode) : pattern_(&pattern), position_(start), full_(mode == Verify::full) {}

  // False at the first wrong byte range.
  bool take(std::span<const std::byte> data) noexcept {
    bool good = true;
    if (full_ || reads_ % 64 == 0) {
      good = pattern_->equal(position_, data);
    } else {
      const size_t edge = std::min<size_t>(64, data.size());
      good = pattern_->equal(position_, data.first(edge)) &&
             pattern_->equal(position_ + data.size() - edge, data.last(edge));
    }
    ++reads_;
    position_ += data.size();
    return good;
  }

 private:
  const Pattern* pattern_ = nullptr;
  uint64_t position_ = 0, reads_ = 0;
  bool full_ = false;
};

}  // namespace fsbl
