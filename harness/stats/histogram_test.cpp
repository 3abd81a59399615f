// Histogram: the layout against a reference written the long way, quantiles against sorted samples.
#include "harness/stats/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/core/random.h"
#include "harness/stats/histogram_json.h"
#include "harness/stats/interval.h"

namespace fsbl {
namespace {

// HdrHistogram's definition, step by step: the first bucket has 2048 slots of width 1, each further one adds
// 1024 slots of twice the width.
size_t reference_index(int64_t value) {
  int bucket = 0;
  while ((value >> bucket) >= 2048) ++bucket;
  const size_t sub = static_cast<size_t>(value >> bucket);
  return bucket == 0 ? sub : 2048 + static_cast<size_t>(bucket - 1) * 1024 + (sub - 1024);
}

// From 0 to 18 minutes in ns, all magnitudes alike.
int64_t any_value(SplitMix64& random) {
  return static_cast<int64_t>(random.next() >> (24 + random.below(40)));
}

int64_t bucket_top(int64_t value) {
  return Histogram::highest_value_of(Histogram::index_of(value));
}

TEST(HistogramLayout, IndexIsTheReferenceIndex) {
  for (int64_t value = 0; value < 1 << 17; ++value)
    ASSERT_EQ(Histogram::index_of(value), reference_index(value)) << value;
  for (int shift = 10; shift < 63; ++shift)
    for (int64_t off = -2; off <= 2; ++off) {
      const int64_t value = (int64_t{1} << shift) + off;
      ASSERT_EQ(Histogram::index_of(value), reference_index(value)) << value;
    }
  ASSERT_EQ(Histogram::index_of(INT64_MAX), reference_index(INT64_MAX));
  SplitMix64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const int64_t value = static_cast<int64_t>(random.next() >> (1 + random.below(63)));
    ASSERT_EQ(Histogram::index_of(value), reference_index(value)) << value;
  }
}

TEST(HistogramLayout, SlotsTileTheRangeWithinThreeDigits) {
  const size_t last = Histogram::index_of(INT64_MAX);
  EXPECT_EQ(Histogram::lowest_value_of(0), 0);
  EXPECT_EQ(Histogram::highest_value_of(last), INT64_MAX);
  for (size_t i = 0; i < last; ++i) {
    const int64_t low = Histogram::lowest_value_of(i), high = Histogram::highest_value_of(i);
    ASSERT_EQ(high + 1, Histogram::lowest_value_of(i + 1)) << i;
    ASSERT_EQ(Histogram::index_of(low), i);
    ASSERT_EQ(Histogram::index_of(high), i);
    ASSERT_LE(static_cast<double>(high - low), 0.001 * static_cast<double>(low)) << i;
  }
}

TEST(Histogram, QuantilesAreThoseOfTheSortedSamples) {
  SplitMix64 random(2);
  for (const size_t n : {1u, 2u, 3u, 10u, 100u, 999u, 1000u, 5000u}) {
    Histogram histogram;
    std::vector<int64_t> sorted;
    for (size_t i = 0; i < n; ++i) histogram.record(sorted.emplace_back(any_value(random)));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(histogram.min(), sorted.front());
    EXPECT_EQ(histogram.max(), sorted.back());
    for (int thousandths = 0; thousandths <= 1000; ++thousandths) {
      const size_t rank = std::max<size_t>((thousandths * n + 999) / 1000, 1);  // integers: exact
      const int64_t expected = std::clamp(bucket_top(sorted[rank - 1]), sorted.front(), sorted.back());
      ASSERT_EQ(histogram.quantile(thousandths / 1000.0), expected) << thousandths << " of " << n;
    }
  }
}

TEST(Histogram, QuantileNeverLeavesTheSamples) {
  for (const int64_t value : {0l, 1l, 2047l, 2049l, 1'000'001l, 3'599'999'999'999l}) {
    Histogram histogram;
    histogram.record(value);
    for (const double q : {0.0, 0.5, 0.999, 1.0}) EXPECT_EQ(histogram.quantile(q), value);
    EXPECT_EQ(histogram.mean(), static_cast<double>(value));
  }
}

TEST(Histogram, QuantileTakesTheDecimalThatWasMeant) {
  Histogram histogram;
  for (int64_t value = 1; value <= 100; ++value) histogram.record(value);
  EXPECT_GT(0.07 * 100, 7);  // the double is a little more than 0.07
  EXPECT_EQ(histogram.quantile(0.07), 7);
  EXPECT_EQ(histogram.quantile(0.0701), 8);
  EXPECT_EQ(histogram.quantile(-1), 1);
  EXPECT_EQ(histogram.quantile(2), 100);
}

TEST(Histogram, MeanIsThatOfTheSamplesWithinASlot) {
  Histogram histogram;
  SplitMix64 random(3);
  long double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto value = static_cast<int64_t>(random.below(100'000'000));
    histogram.record(value);
    sum += value;
  }
  EXPECT_NEAR(histogram.mean(), static_cast<double>(sum / 10'000), 0.0005 * histogram.mean());
}

TEST(Histogram, EmptyHasNoQuantile) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), std::nullopt);
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, ValuesOutsideAreClippedAndCounted) {
  Histogram histogram(1000);
  histogram.record(-5);
  histogram.record(1000);
  histogram.record(1001);
  histogram.record(INT64_MAX);
  histogram.record(INT64_MIN);
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_EQ(histogram.clipped(), 4u);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 1000);
  EXPECT_EQ(histogram.quantile(0.9), 1000);
  histogram.reset();
  EXPECT_EQ(histogram.count() + histogram.clipped(), 0u);
  EXPECT_EQ(histogram.quantile(0.5), std::nullopt);
  EXPECT_EQ(Histogram(-1).highest(), 2);
}

TEST(Histogram, WholeRangeOfHighestIsRecorded) {
  SplitMix64 random(4);
  std::vector<int64_t> ranges = {2, 3, 1023, 1024, 2047, 2048, 2049, 4095, 4096, INT64_MAX - 1, INT64_MAX};
  for (int i = 0; i < 100; ++i) ranges.push_back(2 + any_value(random));
  for (const int64_t highest : ranges) {
    Histogram histogram(highest);
    histogram.record(highest);  // the sanitizer watches the slot
    EXPECT_EQ(histogram.max(), highest);
    EXPECT_EQ(histogram.clipped(), 0u);
    EXPECT_EQ(histogram.quantile(0.5), highest);
  }
}

TEST(Histogram, MergedIsPooled) {
  SplitMix64 random(5);
  Histogram merged, pooled;
  for (int part = 0; part < 7; ++part) {
    Histogram histogram(part % 2 ? 3'600'000'000'000 : 1'000'000'000);
    for (int i = 0; i < 500; ++i) {
      const int64_t value = any_value(random) % 1'000'000'000;
      histogram.record(value);
      pooled.record(value);
    }
    histogram.record(-1);
    pooled.record(-1);
    merged.merge(histogram);
  }
  merged.merge(Histogram());
  EXPECT_EQ(merged.count(), pooled.count());
  EXPECT_EQ(merged.clipped(), 7u);
  EXPECT_EQ(merged.min(), pooled.min());
  EXPECT_EQ(merged.max(), pooled.max());
  EXPECT_EQ(merged.mean(), pooled.mean());
  for (double q = 0; q <= 1; q += 0.001) ASSERT_EQ(merged.quantile(q), pooled.quantile(q)) << q;
}

TEST(Histogram, MergeClipsWhatLiesBeyond) {
  Histogram small(1000), large;
  large.record(500);
  large.record(1'000'000);
  large.record(2'000'000);
  small.merge(large);
  EXPECT_EQ(small.count(), 3u);
  EXPECT_EQ(small.clipped(), 2u);
  EXPECT_EQ(small.max(), 1000);
  EXPECT_EQ(small.min(), 500);
}

// A count of 2^33 by merging a histogram with itself.
TEST(Histogram, CountsBeyond32Bits) {
  Histogram histogram;
  histogram.record(10);
  histogram.record(20'000);
  for (int i = 0; i < 33; ++i) {
    const Histogram copy = histogram;
    histogram.merge(copy);
  }
  EXPECT_EQ(histogram.count(), 1ull << 34);
  EXPECT_EQ(histogram.quantile(0.5), 10);
  EXPECT_EQ(histogram.quantile(0.500001), 20'000);
  EXPECT_NEAR(histogram.mean(), 10'005, 5);
  const auto decoded = Histogram::decode_base64(histogram.encode_base64());
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->count(), 1ull << 34);
}

TEST(HistogramJson, CarriesTheExactExtremes) {
  Histogram histogram(1'000'000);
  for (const int64_t value : {123'457, 500'001, 987'653, 2'000'000}) histogram.record(value);
  const Json json = to_json(histogram);
  EXPECT_EQ(json["n"], 4);
  EXPECT_EQ(json["clipped"], 1);
  EXPECT_EQ(json["quantiles"]["p50"], bucket_top(500'001));
  EXPECT_EQ(json["quantiles"]["max"], 1'000'000);
  EXPECT_FALSE(json["quantiles"].contains("p95")) << "4 samples";
  const auto read = histogram_from_json(json);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->min(), 123'457);
  EXPECT_EQ(read->max(), 1'000'000);
  EXPECT_EQ(read->clipped(), 1u);
  EXPECT_EQ(to_json(*read), json);
}

TEST(HistogramJson, TailQuantilesNeedTheirSamples) {
  Histogram histogram;
  for (uint64_t i = 1; i < samples_needed(0.999); ++i) histogram.record(5);
  EXPECT_FALSE(to_json(histogram)["quantiles"].contains("p99.9"));
  EXPECT_TRUE(to_json(histogram)["quantiles"].contains("p99"));
  histogram.record(5);
  EXPECT_TRUE(to_json(histogram)["quantiles"].contains("p99.9"));
}

TEST(HistogramJson, EmptyRoundTrips) {
  const Json json = to_json(Histogram());
  EXPECT_FALSE(json.contains("min"));
  EXPECT_TRUE(json["quantiles"].empty());
  const auto read = histogram_from_json(json);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->count(), 0u);
}

TEST(HistogramJson, RefusesWhatDoesNotFit) {
  Histogram histogram;
  for (const int64_t value : {100, 200'000}) histogram.record(value);
  const Json good = to_json(histogram);
  ASSERT_TRUE(histogram_from_json(good));
  const auto refused = [&](const char* field, Json value) {
    Json bad = good;
    bad[field] = std::move(value);
    const auto read = histogram_from_json(bad);
    return !read && read.error().kind == ErrorKind::bad_input;
  };
  EXPECT_TRUE(refused("n", 3));
  EXPECT_TRUE(refused("n", -2));
  EXPECT_TRUE(refused("n", 2.0));
  EXPECT_TRUE(refused("min", 99));
  EXPECT_TRUE(refused("min", 300'000));
  EXPECT_TRUE(refused("max", 250'000));
  EXPECT_TRUE(refused("max", UINT64_MAX));
  EXPECT_TRUE(refused("clipped", 3));
  EXPECT_TRUE(refused("data", "HISTFAAA"));
  EXPECT_TRUE(refused("data", nullptr));
  EXPECT_TRUE(refused("encoding", "HdrHistogram V1"));
  EXPECT_FALSE(histogram_from_json(Json(3)));
  EXPECT_FALSE(histogram_from_json(Json::array({1})));
  EXPECT_FALSE(histogram_from_json(Json::object()));
}

}  // namespace
}  // namespace fsbl
