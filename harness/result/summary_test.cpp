// summarise(): what is counted, what is pooled, what is n/a, and which rounds make a pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/result/model.h"

namespace fsbl {
namespace {

Cell cell(const std::string& transport, const std::string& arm = "", uint64_t payload = 64) {
  Cell cell;
  cell.id = transport + "|" + arm + "|" + std::to_string(payload);
  cell.scenario = "s";
  cell.arm = arm;
  cell.config.transport = {transport, "none", transport == "plaintext" ? "plain" : "tls", ""};
  cell.factors = {
      {"transport", transport}, {"session", cell.config.transport.session}, {"payload_bytes", payload}};
  if (transport != "plaintext") cell.factors["cipher"] = "TLS_AES_128_GCM_SHA256";
  return cell;
}

Round round(const Cell& cell, int block, Series series, const std::string& status = "valid") {
  Round round;
  round.cell = cell.id;
  round.block = block;
  round.status = status;
  round.series = {std::move(series)};
  return round;
}

Series rate(double value) {
  return {.metric = "throughput",
          .basis = "received",
          .side = "server",
          .unit = "bit/s",
          .better = "higher",
          .value = value};
}

// n samples: first, first + 1, ...; below 2048 the histogram is exact.
Series latency(int64_t first, int n) {
  Histogram histogram;
  for (int i = 0; i < n; ++i) histogram.record(first + i);
  return {.metric = "latency",
          .basis = "sent",
          .side = "client",
          .unit = "ns",
          .better = "lower",
          .distribution = histogram};
}

const SummaryRow& row_of(const std::vector<SummaryRow>& rows, const Cell& cell,
                         std::optional<double> quantile = {}) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const SummaryRow& row) {
    return row.cell == cell.id && row.quantile == quantile;
  });
  if (found != rows.end()) return *found;
  ADD_FAILURE() << "no row of " << cell.id;
  static const SummaryRow none;
  return none;
}

TEST(Summary, OneRunHasAValueAndNothingElse) {
  const Cell c = cell("plaintext");
  const auto rows = summarise({c}, {round(c, 0, rate(5))});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].metric, "throughput");
  EXPECT_EQ(rows[0].basis, "received");
  EXPECT_EQ(rows[0].side, "server");
  EXPECT_EQ(rows[0].unit, "bit/s");
  EXPECT_EQ(rows[0].better, "higher");
  EXPECT_EQ(rows[0].value, 5);
  EXPECT_EQ(rows[0].n, 1u);
  EXPECT_FALSE(rows[0].quantile || rows[0].interval || rows[0].cv || rows[0].ratio_to_plaintext ||
               rows[0].pooled);
  EXPECT_EQ(rows[0].note, "");
}

TEST(Summary, IntervalsSayWhatTheyAreWorth) {
  const Cell c = cell("plaintext");
  std::vector<Round> rounds;
  for (const double value : {30, 10, 20})
    rounds.push_back(round(c, static_cast<int>(rounds.size()), rate(value)));
  const auto three = summarise({c}, rounds)[0];
  EXPECT_EQ(three.value, 20);
  EXPECT_EQ(three.interval->level, 0.75);
  EXPECT_EQ(three.interval->lo, 10);
  EXPECT_EQ(three.interval->hi, 30);
  EXPECT_EQ(three.interval->method, "range");
  EXPECT_DOUBLE_EQ(*three.cv, 0.5);
  for (const double value : {40, 50, 60})
    rounds.push_back(round(c, static_cast<int>(rounds.size()), rate(value)));
  const auto six = summarise({c}, rounds)[0];
  EXPECT_EQ(six.value, 35);
  EXPECT_EQ(six.interval->level, 0.96875);
  EXPECT_EQ(six.interval->method, "order statistics");
}

TEST(Summary, OnlyValidRoundsCount) {
  const Cell c = cell("plaintext");
  const auto rows =
      summarise({c}, {round(c, 0, rate(5)), round(c, 1, rate(900), "invalid"), round(c, 2, rate(7)),
                      round(c, 3, rate(900), "failed"), round(c, 4, rate(std::nan("")))});
  EXPECT_EQ(rows.at(0).value, 6);
  EXPECT_EQ(rows[0].n, 2u);
}

TEST(Summary, CellWithoutAValidRoundKeepsItsRow) {
  const Cell a = cell("plaintext"), b = cell("mtls");
  const auto rows = summarise({a, b}, {round(a, 0, rate(5)), round(b, 0, rate(5), "invalid"),
                                       round(b, 1, latency(1, 10), "invalid")});
  EXPECT_FALSE(row_of(rows, b).value);
  EXPECT_EQ(row_of(rows, b).note, "n/a (no valid round)");
  EXPECT_EQ(row_of(rows, b, 1.0).note, "n/a (no valid round)");
  EXPECT_FALSE(row_of(rows, b).ratio_to_plaintext);
  EXPECT_TRUE(summarise({a}, {}).empty());
}

TEST(Summary, MedianOfRunsWhereEachHasEnoughSamples) {
  const Cell c = cell("plaintext");
  const auto rows = summarise(
      {c}, {round(c, 0, latency(1, 299)), round(c, 1, latency(11, 299)), round(c, 2, latency(101, 299))});
  const SummaryRow& p50 = row_of(rows, c, 0.5);
  EXPECT_EQ(p50.value, 160);  // runs: 150, 160, 250
  EXPECT_EQ(p50.interval->lo, 150);
  EXPECT_EQ(p50.interval->hi, 250);
  EXPECT_EQ(p50.samples, 897u);
  const SummaryRow& p99 = row_of(rows, c, 0.99);
  EXPECT_EQ(p99.value, 307);  // runs: 297, 307, 397
  EXPECT_FALSE(p99.pooled);
  const SummaryRow& p999 = row_of(rows, c, 0.999);
  EXPECT_FALSE(p999.value);
  EXPECT_FALSE(p999.pooled);
  EXPECT_EQ(p999.note, "n/a (n=897)");
  const SummaryRow& max = row_of(rows, c, 1.0);
  EXPECT_EQ(max.value, 399);
  EXPECT_EQ(max.note, "largest of 3 runs");
  EXPECT_FALSE(max.interval || max.cv);
}

TEST(Summary, OneSampleShortOfATailPoolsTheRuns) {
  const Cell c = cell("plaintext");
  const auto rows = summarise({c}, {round(c, 0, latency(1, 299)), round(c, 1, latency(300, 298))});
  const SummaryRow& p99 = row_of(rows, c, 0.99);
  EXPECT_TRUE(p99.pooled);
  EXPECT_EQ(p99.value, 592);  // rank ceil(0.99 * 597) of 1..597
  EXPECT_FALSE(p99.interval || p99.cv);
  EXPECT_FALSE(row_of(rows, c, 0.5).pooled) << "a median needs no minimum";
}

TEST(Summary, QuantilesNeverLieBelowTheMinimum) {
  const Cell c = cell("plaintext");
  const auto rows = summarise({c}, {round(c, 0, latency(3'000'001, 1))});
  EXPECT_EQ(row_of(rows, c, 0.5).value, 3'000'001);
  EXPECT_EQ(row_of(rows, c, 1.0).value, 3'000'001);
}

TEST(Summary, EmptyRunDoesNotStandAlone) {
  const Cell c = cell("plaintext");
  auto rows = summarise({c}, {round(c, 0, latency(0, 0))});
  EXPECT_EQ(row_of(rows, c, 0.5).note, "n/a (n=0)");
  EXPECT_EQ(row_of(rows, c, 1.0).note, "n/a (n=0)");
  rows = summarise({c}, {round(c, 0, latency(0, 0)), round(c, 1, latency(7, 1))});
  EXPECT_EQ(row_of(rows, c, 0.5).value, 7);
  EXPECT_TRUE(row_of(rows, c, 0.5).pooled);
}

TEST(Summary, ClippedSamplesAndOutliersAreNamed) {
  const Cell c = cell("plaintext");
  Series clipped = latency(1, 10);
  clipped.distribution->record(-1);
  EXPECT_EQ(row_of(summarise({c}, {round(c, 0, clipped)}), c, 0.5).note, "1 samples clipped");
  std::vector<Round> rounds;
  for (const double value : {10., 10.1, 9.9, 10.2, 50.})
    rounds.push_back(round(c, static_cast<int>(rounds.size()), rate(value)));
  const auto rows = summarise({c}, rounds);
  EXPECT_EQ(rows.at(0).note, "block 4 is an outlier");
  EXPECT_EQ(rows[0].value, 10.1);
  EXPECT_EQ(rows[0].interval->hi, 50) << "flagged, not deleted";
}

TEST(Ratio, PairsWithinBlocksThatBothHave) {
  const Cell plain = cell("plaintext"), mtls = cell("mtls");
  // Block 1 misses plaintext, block 3 misses mtls, block 4 of plaintext is invalid: 0 and 2 are left.
  const auto rows = summarise(
      {plain, mtls}, {round(plain, 0, rate(100)), round(mtls, 0, rate(50)), round(mtls, 1, rate(1)),
                      round(mtls, 2, rate(800)), round(plain, 2, rate(400)), round(plain, 3, rate(1)),
                      round(plain, 4, rate(1), "invalid"), round(mtls, 4, rate(70))});
  const auto expected = paired_ratio(std::vector<double>{50, 800}, std::vector<double>{100, 400});
  const SummaryRow& row = row_of(rows, mtls);
  EXPECT_EQ(row.n, 4u);
  EXPECT_DOUBLE_EQ(row.ratio_to_plaintext->value, expected->value);
  EXPECT_DOUBLE_EQ(row.ratio_to_plaintext->interval->lo, expected->interval->lo);
  EXPECT_FALSE(row_of(rows, plain).ratio_to_plaintext);
}

TEST(Ratio, NoCommonBlockNoRatio) {
  const Cell plain = cell("plaintext"), mtls = cell("mtls");
  EXPECT_FALSE(row_of(summarise({plain, mtls}, {round(plain, 0, rate(1)), round(mtls, 1, rate(1))}), mtls)
                   .ratio_to_plaintext);
  EXPECT_FALSE(row_of(summarise({plain, mtls}, {round(plain, 0, rate(0)), round(mtls, 0, rate(1))}), mtls)
                   .ratio_to_plaintext)
      << "nothing to divide by";
}

TEST(Ratio, ComparesWithThePlaintextThatIsAlikeOtherwise) {
  const Cell mtls = cell("mtls", "new", 64);
  std::vector<Cell> cells = {cell("plaintext", "", 64), cell("plaintext", "new", 1024),
                             cell("plaintext", "new", 64), mtls};
  cells[0].id = "wrong arm";
  cells[1].id = "wrong payload";
  std::vector<Round> rounds;
  for (const Cell& c : cells) rounds.push_back(round(c, 0, rate(c.id == cells[2].id ? 10 : 77)));
  EXPECT_DOUBLE_EQ(row_of(summarise(cells, rounds), mtls).ratio_to_plaintext->value, 7.7);
  cells[2].scenario = "another";
  EXPECT_FALSE(row_of(summarise(cells, rounds), mtls).ratio_to_plaintext);
}

TEST(Ratio, MatchesMetricBasisAndSide) {
  const Cell plain = cell("plaintext"), mtls = cell("mtls");
  Series client = rate(1);
  client.side = "client";
  EXPECT_FALSE(row_of(summarise({plain, mtls}, {round(plain, 0, client), round(mtls, 0, rate(1))}), mtls)
                   .ratio_to_plaintext);
}

TEST(Ratio, PooledQuantilesHaveAValueWithoutInterval) {
  const Cell plain = cell("plaintext"), mtls = cell("mtls");
  std::vector<Round> rounds;
  for (int block = 0; block < 2; ++block) {
    rounds.push_back(round(plain, block, latency(1, 300)));
    rounds.push_back(round(mtls, block, latency(601, 200)));
  }
  const auto rows = summarise({plain, mtls}, rounds);
  const SummaryRow& p99 = row_of(rows, mtls, 0.99);
  EXPECT_TRUE(p99.pooled);
  EXPECT_DOUBLE_EQ(p99.ratio_to_plaintext->value, 798.0 / 297);
  EXPECT_FALSE(p99.ratio_to_plaintext->interval);
  EXPECT_TRUE(row_of(rows, mtls, 0.5).ratio_to_plaintext->interval);
  EXPECT_FALSE(row_of(rows, mtls, 1.0).ratio_to_plaintext) << "maxima are not compared";
}

}  // namespace
}  // namespace fsbl
