// Threads added up to a worker's reading, and the timeline of the phases.
#include "harness/load/reading.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

TEST(Timeline, FollowsThePhases) {
  PhaseConfig phases;
  phases.warm_up = 10;
  phases.measure = 100;
  phases.cool_down = 70'000'000;
  Timeline t = make_timeline(phases, 1000);
  EXPECT_EQ(t.start, 1000);
  EXPECT_EQ(t.warm_end, 1010);
  EXPECT_EQ(t.measure_end, 1110);
  EXPECT_EQ(t.measure_limit, 1110);  // no extension
  EXPECT_EQ(t.stop, 70'001'110);
  EXPECT_GT(t.drain_limit, t.stop);
  phases.min_samples = 5;
  phases.max_duration = 500;
  t = make_timeline(phases, 1000);
  EXPECT_EQ(t.measure_end, 1110);
  EXPECT_EQ(t.measure_limit, 1510);
  EXPECT_EQ(t.min_samples, 5u);
  EXPECT_GT(t.drain_limit, t.measure_limit + phases.cool_down);
  phases.cool_down = 0;  // the two sides don't start at the same moment: some is always needed
  EXPECT_GT(make_timeline(phases, 1000).stop, 1110 + 1'000'000);
  phases.max_duration = 50;  // shorter than the window itself
  EXPECT_EQ(make_timeline(phases, 1000).measure_limit, 1110);
}

TEST(Reading, AddsThreadsUpWithTheirOwnWindows) {
  std::vector<ThreadReading> threads(2);
  for (size_t i = 0; i < 2; ++i) {
    ThreadReading& t = threads[i];
    const uint64_t k = i + 1;
    t.window_from = 5'000'000'000;
    t.window_to = t.window_from + static_cast<Nanos>(k) * 1'000'000'000;  // 1 s and 2 s
    t.window_received_bytes = 1000 * k;
    t.window_sent_bytes = 3000 * k;
    t.window_requests = 10 * k;
    t.window_cpu_ns = k;
    t.sent_bytes = 10 * k, t.received_bytes = 20 * k;
    t.wire_out = 30 * k, t.wire_in = 40 * k;
    t.records_out = 50 * k, t.records_in = 60 * k;
    t.planned = 100 * k, t.done = 97 * k, t.failed = 2 * k, t.outstanding = k;
    t.failures = {"failure " + std::to_string(k)};
    for (uint64_t n = 0; n < k; ++n) t.latency.record(static_cast<int64_t>(1000 * k));
  }
  const Json json = to_json(threads, 4'000'000'000);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["window_from_ns"], 1'000'000'000);
  EXPECT_EQ(json["window_to_ns"], 3'000'000'000);
  EXPECT_EQ(json["window_received_bytes"], 3000);
  EXPECT_EQ(json["window_sent_bytes"], 9000);
  EXPECT_EQ(json["window_requests"], 30);
  EXPECT_DOUBLE_EQ(json["received_bps"].get<double>(), 8 * (1000 + 2000 / 2.0));  // rates of each window, then added
  EXPECT_DOUBLE_EQ(json["sent_bps"].get<double>(), 8 * (3000 + 6000 / 2.0));
  EXPECT_DOUBLE_EQ(json["requests_per_s"].get<double>(), 10 + 20 / 2.0);
  EXPECT_EQ(json["window_cpu_ns"], 3);
  for (const auto& [key, one] : {std::pair{"sent_bytes", 10}, {"received_bytes", 20}, {"wire_out", 30}, {"wire_in", 40},
                                 {"records_out", 50}, {"records_in", 60}, {"planned", 100}, {"done", 97}, {"failed", 2},
                                 {"outstanding", 1}})
    EXPECT_EQ(json[key], 3 * one) << key;
  EXPECT_EQ(json["failures"], Json::array({"failure 1", "failure 2"}));
}

TEST(Reading, WithoutAWindowHasNoRateAndNoLatency) {
  const Json json = to_json(std::vector<ThreadReading>(1), 0);
  EXPECT_EQ(json["received_bps"], 0.0);
  EXPECT_EQ(json["requests_per_s"], 0.0);
  EXPECT_FALSE(json.contains("latency"));
  EXPECT_EQ(json["tcp"], Json::array());
  EXPECT_EQ(to_json(std::vector<ThreadReading>(), 7)["threads"], 0);
}

TEST(Outcome, AddsThreadsUp) {
  std::vector<ConnectOutcome> threads(2);
  threads[0] = {3, 2, {Json{{"peer_id", "a"}}}, {Json{{"reason", "expired"}}}, {}};
  threads[1] = {2, 1, {}, {}, {"no answer in time"}};
  const Json json = to_json(threads);
  EXPECT_EQ(json["planned"], 5);
  EXPECT_EQ(json["established"], 3);
  EXPECT_EQ(json["handshakes"].size(), 1u);
  EXPECT_EQ(json["refusals"][0]["reason"], "expired");
  EXPECT_EQ(json["failures"], Json::array({"no answer in time"}));
}

}  // namespace
}  // namespace fsbl
