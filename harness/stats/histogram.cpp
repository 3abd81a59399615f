#include "harness/stats/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fsbl {
namespace {

constexpr int kHalfMagnitude = 10;  // log2(kSubBucketHalf)

// Slots of the reference layout: whole buckets until `highest` fits, half a bucket each, and the first one
// twice.
size_t layout_size(int64_t highest) {
  return ((Histogram::index_of(highest) >> kHalfMagnitude) + 1) << kHalfMagnitude;
}

// Index 0..2047 is the value itself; every further half bucket doubles the width of its 1024 slots.
int width_shift_of(size_t index) {
  return std::max(static_cast<int>(index >> kHalfMagnitude) - 1, 0);
}

}  // namespace

Histogram::Histogram(int64_t highest)
    : highest_(std::max<int64_t>(highest, 2)),
      counts_(std::max<size_t>(layout_size(highest_), kSubBucketCount)) {}

int64_t Histogram::lowest_value_of(size_t index) noexcept {
  const int shift = width_shift_of(index);
  return (static_cast<int64_t>(index) - (int64_t{shift} << kHalfMagnitude)) << shift;
}

int64_t Histogram::highest_value_of(size_t index) noexcept {
  return lowest_value_of(index) + ((int64_t{1} << width_shift_of(index)) - 1);
}

int64_t Histogram::min() const {
  return total_ == 0 ? 0 : min_;
}
int64_t Histogram::max() const {
  return total_ == 0 ? 0 : max_;
}

double Histogram::mean() const {
  if (total_ == 0) return 0;
  long double sum = 0;
  for (size_t i = index_of(min_); i <= index_of(max_); ++i) {
    if (counts_[i] == 0) continue;
    const long double low = lowest_value_of(i), high = highest_value_of(i);
    sum += (low + high) / 2 * counts_[i];
  }
  return std::clamp(static_cast<double>(sum / total_), static_cast<double>(min_), static_cast<double>(max_));
}

std::optional<int64_t> Histogram::quantile(double q) const {
  if (total_ == 0) return std::nullopt;
  uint64_t rank = total_;
  if (!(q >= 1)) {
    // 2^-52 undoes the rounding of q to a double; a true fraction of a rank is far larger.
    const long double exact = std::max(0.0, q) * static_cast<long double>(total_) * (1 - 0x1p-52L);
    rank = std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(exact)), 1, total_);
  }
  uint64_t seen = 0;
  for (size_t i = index_of(min_); i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(highest_value_of(i), min_, max_);
  }
  return max_;
}

void Histogram::merge(const Histogram& other) {
  if (other.total_ == 0) return;
  const size_t top = index_of(highest_);
  for (size_t i = index_of(other.min_); i <= index_of(other.max_); ++i) {
    counts_[std::min(i, top)] += other.counts_[i];
    if (i > top) clipped_ += other.counts_[i];
  }
  total_ += other.total_;
  clipped_ += other.clipped_;
  min_ = std::min({min_, other.min_, highest_});
  max_ = std::max(max_, std::min(other.max_, highest_));
}

void Histogram::reset() {
  std::fill(counts_.begin(), counts_.end(), 0);
  total_ = clipped_ = 0;
  min_ = INT64_MAX;
  max_ = 0;
}

Expected<> Histogram::set_exact(int64_t min, int64_t max, uint64_t clipped) {
  if (clipped > total_)
    return bad_input("histogram", fmt::format("{} values clipped of only {}", clipped, total_));
  if (total_ > 0) {
    if (min < 0 || max < min || index_of(min) != index_of(min_) || index_of(max) != index_of(max_))
      return bad_input(
          "histogram",
          fmt::format("min {} and max {} do not lie in the first and last filled bucket", min, max));
    min_ = min;
    max_ = max;
  }
  clipped_ = clipped;
  return {};
}

}  // namespace fsbl
