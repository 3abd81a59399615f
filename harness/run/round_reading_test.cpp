// From replies to a round: every validity flag has data that must trip it and data that must not.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/round_runner.h"
#include "harness/stats/histogram_json.h"

namespace fsbl {
namespace {

Json layer(const char* side, Verdict verdict) {
  LayerProof proof;
  proof.layer = "link";
  proof.side = side;
  proof.verdict = verdict;
  return to_json(proof);
}

// A clean stream round, 1 flow up: 1000 kB sent and received.
struct Replies {
  Cell cell;
  BothSides<Json> connected, measured;

  Replies() {
    cell.id = "t|plaintext";
    cell.config.transport = {"plaintext", "none", "plain", ""};
    cell.config.load.shape = Shape::stream;
    cell.config.probes = {"latency", "tcp_info", "cpu", "perf", "interface"};
    for (size_t side : {0u, 1u}) {
      connected[side] = {{"planned", 1}, {"established", 1}, {"handshakes", Json::array()}, {"refusals", Json::array()},
                         {"failures", Json::array()}};
      const bool client = side == 0;
      measured[side] = {
          {"reading",
           {{"threads", 1}, {"window_from_ns", 500}, {"window_to_ns", 1'000'000'500}, {"window_sent_bytes", client ? 800'000 : 0},
            {"window_received_bytes", client ? 0 : 800'000}, {"window_requests", 0}, {"window_cpu_ns", 400'000'000},
            {"received_bps", client ? 0.0 : 6.4e6}, {"sent_bps", client ? 6.4e6 : 0.0}, {"requests_per_s", 0.0},
            {"sent_bytes", client ? 1'000'048 : 48}, {"received_bytes", client ? 48 : 1'000'048},
            {"wire_out", client ? 1'000'048 : 48}, {"wire_in", client ? 48 : 1'000'048}, {"retransmitted_bytes", 0},
            {"planned", client ? 16 : 0}, {"done", client ? 16 : 0}, {"failed", 0}, {"outstanding", 0},
            {"failures", Json::array()}, {"max_rss_bytes", 1 << 20},
            {"tcp", {{{"retransmits", 0}, {"rtt_us", 50.0}, {"cwnd_segments", 10.0}}}}}},
          {"cpu", {{"window_ns", 1'000'000'000}, {"steal_ns", 0}, {"softirq_ns", 1000}}},
          {"perf", Json::array()},
          {"missing", {{{"name", "cycles"}, {"reason", "ENOENT"}}}},
          {"interface",
           {{"difference", {{"tx_bytes", client ? 1'010'000 : 2000}, {"rx_bytes", client ? 2000 : 1'010'000},
                            {"tx_packets", client ? 40 : 20}, {"rx_packets", client ? 20 : 40}}}}},
          {"layers", {layer(client ? "client" : "server", Verdict::proved)}}};
    }
  }
  Json& reading(size_t side) { return measured[side]["reading"]; }
  Round read() const {
    Round round;
    round.details = Json::object();
    read_round(cell, connected, measured, round);
    return round;
  }
};

bool has(const Round& round, const char* code) {
  return std::any_of(round.flags.begin(), round.flags.end(), [&](const Flag& f) { return f.code == code; });
}
double value_of(const Round& round, const char* metric, const char* side) {
  for (const Series& s : round.series)
    if (s.metric == metric && s.side == side) return *s.value;
  ADD_FAILURE() << "no series " << metric << " of the " << side;
  return -1;
}

TEST(RoundReading, CleanStreamRoundIsValidAndProved) {
  const Round round = Replies().read();
  EXPECT_EQ(round.status, "valid");
  EXPECT_TRUE(round.flags.empty()) << round.flags[0].code;
  EXPECT_EQ(round.path, Verdict::proved);
  EXPECT_DOUBLE_EQ(value_of(round, "throughput", "server"), 6.4e6);
  EXPECT_DOUBLE_EQ(value_of(round, "cpu_ns_per_byte", "client"), 500.0);
  EXPECT_DOUBLE_EQ(value_of(round, "load_thread_busy_ratio", "client"), 0.4);
  EXPECT_EQ(round.accounting.planned, 16u);
  ASSERT_EQ(round.missing.size(), 2u);
  EXPECT_EQ(round.missing[0].name, "perf.cycles");
}

TEST(RoundReading, TunnelDaemonsCountAsTheTransportsCpu) {
  Replies replies;
  replies.measured[0]["cpu"]["tunnel_cpu_ns"] = 400'000'000;
  EXPECT_DOUBLE_EQ(value_of(replies.read(), "cpu_ns_per_byte", "client"), 1000.0);
}

TEST(RoundReading, LatencyComesFromTheClientsHistogram) {
  Replies replies;
  replies.cell.config.load.shape = Shape::request_response;
  Histogram histogram;
  histogram.record(1000);
  histogram.record(3'600'000'000'001);  // clipped
  replies.reading(0)["latency"] = to_json(histogram);
  replies.reading(0)["window_requests"] = 2;
  const Round round = replies.read();
  const auto latency = std::find_if(round.series.begin(), round.series.end(), [](const Series& s) { return s.metric == "latency"; });
  ASSERT_NE(latency, round.series.end());
  EXPECT_EQ(latency->distribution->count(), 2u);
  EXPECT_EQ(latency->distribution->min(), 1000);
  EXPECT_EQ(latency->distribution->clipped(), 1u);
  EXPECT_EQ(latency->basis, "sent");
}

TEST(RoundReading, NoSampleInvalidates) {
  Replies replies;
  replies.reading(1)["received_bps"] = 0.0;
  EXPECT_TRUE(has(replies.read(), "no-samples"));
  replies.cell.config.load.shape = Shape::request_response;
  EXPECT_TRUE(has(replies.read(), "no-samples"));
}

TEST(RoundReading, ConservationIsChecked) {
  Replies replies;
  replies.reading(0)["done"] = 15;
  EXPECT_TRUE(has(replies.read(), "conservation"));
  replies.reading(0)["failed"] = 1;
  EXPECT_FALSE(has(replies.read(), "conservation"));
  replies.reading(0)["failed"] = 0;
  replies.reading(0)["outstanding"] = 1;
  const Round round = replies.read();
  EXPECT_FALSE(has(round, "conservation"));
  EXPECT_TRUE(has(round, "not-drained"));
  EXPECT_EQ(round.status, "invalid");
}

TEST(RoundReading, EveryByteMustArrive) {
  Replies replies;
  replies.reading(1)["received_bytes"] = 1'000'047;
  EXPECT_TRUE(has(replies.read(), "bytes-lost"));
}

TEST(RoundReading, InterfaceMustCarryTheBytesAndNotManyMore) {
  Replies low;
  low.measured[0]["interface"]["difference"]["tx_bytes"] = 999'999;  // bypassed: fewer than the sockets moved
  EXPECT_TRUE(has(low.read(), "bytes-unreconciled"));
  Replies high;
  high.measured[0]["interface"]["difference"]["tx_bytes"] = 1'400'000;  // somebody else's traffic
  EXPECT_TRUE(has(high.read(), "bytes-unreconciled"));
  high.reading(0)["retransmitted_bytes"] = 390'000;  // or TCP sent them again
  EXPECT_FALSE(has(high.read(), "bytes-unreconciled"));
}

TEST(RoundReading, FailedFlowIsNamed) {
  Replies replies;
  replies.reading(1)["failures"] = {"server flow 0: received bytes differ from those sent"};
  const Round round = replies.read();
  ASSERT_TRUE(has(round, "flow-failed"));
  EXPECT_EQ(round.flags[0].value, "server flow 0: received bytes differ from those sent");
}

TEST(RoundReading, SilentResumptionInvalidatesUnlessAskedFor) {
  Replies replies;
  replies.connected[0]["handshakes"] = {{{"resumed", true}}, {{"resumed", false}}};
  EXPECT_TRUE(has(replies.read(), "silent-resumption"));
  replies.cell.config.tls.resumption = true;
  const Round round = replies.read();
  EXPECT_FALSE(has(round, "silent-resumption"));
  EXPECT_DOUBLE_EQ(value_of(round, "resumed_ratio", "client"), 0.5);
}

TEST(RoundReading, StealIsNotedAndDoesNotInvalidate) {
  Replies replies;
  replies.measured[0]["cpu"]["steal_ns"] = 10'000'000;
  EXPECT_FALSE(has(replies.read(), "steal"));
  replies.measured[0]["cpu"]["steal_ns"] = 50'000'000;
  const Round round = replies.read();
  EXPECT_TRUE(has(round, "steal"));
  EXPECT_EQ(round.status, "valid");
}

TEST(RoundReading, ContradictedPathInvalidatesUnprovenIsNoted) {
  Replies replies;
  replies.measured[1]["layers"] = {layer("server", Verdict::contradicted)};
  Round round = replies.read();
  EXPECT_TRUE(has(round, "path-contradicted"));
  EXPECT_EQ(round.status, "invalid");
  replies.measured[1]["layers"] = {layer("server", Verdict::unproven)};
  round = replies.read();
  EXPECT_TRUE(has(round, "path-unproven"));
  EXPECT_EQ(round.status, "valid");
}

TEST(RoundReading, ProbesThatWereNotAskedForLeaveNoSeries) {
  Replies replies;
  replies.cell.config.probes = {"latency"};
  for (const Series& series : replies.read().series) EXPECT_TRUE(series.source == "worker" && series.metric == "throughput") << series.metric;
}

}  // namespace
}  // namespace fsbl
