// Goal: a plan holds exactly the cells that were asked for, in a seeded order, and says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/random.h"
#include "harness/scenario/expand.h"
#include "harness/scenario/load.h"

namespace fsbl {
namespace {

const std::string kBase =
    "id: t/x\nseed: 7\nrepetitions: 2\ntransports: [plaintext, mtls]\nload: {reply: 128B}\n";

RunPlan plan(const std::string& yaml, const PlanRequest& request = {}) {
  auto planned = plan_text(yaml, "x.yaml", request);
  EXPECT_TRUE(planned) << planned.error().message();
  return planned ? *planned : RunPlan{};
}

std::string error_of(const std::string& yaml, const PlanRequest& request) {
  const auto planned = plan_text(yaml, "x.yaml", request);
  if (planned) return "";
  EXPECT_EQ(planned.error().kind, ErrorKind::bad_input);
  return planned.error().message();
}

std::vector<std::string> ids(const RunPlan& plan) {
  std::vector<std::string> ids;
  for (const Cell& cell : plan.cells) ids.push_back(cell.id);
  return ids;
}

TEST(Plan, DefaultsAreTheFsblMethod) {
  const RunPlan p = plan("id: t/x\ntransports: [mtls]\n");
  ASSERT_EQ(p.cells.size(), 1u);
  EXPECT_EQ(p.repetitions, 5);
  EXPECT_EQ(p.profile, "full");
  EXPECT_EQ(p.scenarios[0].title, "t/x");
  const CellConfig& config = p.cells[0].config;
  EXPECT_EQ(config.phases.warm_up, 30'000'000'000);
  EXPECT_EQ(config.phases.measure, 120'000'000'000);
  EXPECT_EQ(config.probes, (std::vector<std::string>{"latency", "tcp_info", "cpu", "perf", "interface"}));
  EXPECT_EQ(config.transport.engine, "openssl");
  EXPECT_EQ(p.cells[0].id, "t/x|mtls");
}

TEST(Plan, MatrixIsTheProductOfItsFactors) {
  const RunPlan p = plan(kBase + R"(matrix:
  load.payload: [64, 4KiB, 65536]
  testbed.ip: [4, 6]
  tls.cipher: [TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256]
)");
  std::vector<std::string> expected;
  for (const char* transport : {"plaintext", "mtls"})
    for (const char* payload : {"64B", "4KiB", "64KiB"})
      for (const char* ip : {"4", "6"})
        for (const char* cipher : {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"})
          expected.push_back(std::string("t/x|") + transport + "|load.payload=" + payload +
                             "|testbed.ip=" + ip + "|tls.cipher=" + cipher);
  EXPECT_EQ(ids(p), expected);
  for (const Cell& cell : p.cells) {
    const uint64_t payload = cell.id.find("=64B") != std::string::npos    ? 64
                             : cell.id.find("=4KiB") != std::string::npos ? 4096
                                                                          : 65536;
    EXPECT_EQ(cell.config.load.payload_bytes, payload);
    EXPECT_EQ(cell.config.load.reply_bytes, 128u);
    EXPECT_EQ(cell.factors["payload_bytes"], payload);
    EXPECT_EQ(cell.factors["ip"], static_cast<int>(cell.config.testbed.ip));
    EXPECT_NE(cell.id.find(cell.config.tls.cipher), std::string::npos);
  }
}

TEST(Plan, FactorsNameWhatMattersForTheCell) {
  const RunPlan rr = plan("id: t/x\ntransports: [plaintext, mtls]\n");
  EXPECT_EQ(
      dump_json(rr.cells[0].factors),
      R"({"scenario":"t/x","arm":"","transport":"plaintext","tunnel":"none","session":"plain","engine":"",)"
      R"("shape":"request-response","payload_bytes":65536,"reply_bytes":64,"streams":1,"mtu":1500,"ip":4,)"
      R"("wait":"block","verify":"sampled"})");
  EXPECT_EQ(rr.cells[1].factors["cipher"], "TLS_AES_256_GCM_SHA384");
  EXPECT_EQ(rr.cells[1].factors["key"], "p256");

  const RunPlan stream = plan(R"(
id: t/x
transports: [plaintext]
load: {shape: stream}
matrix:
  testbed.offloads.tso: [off]
  phases.measure: [2s]
  load.reply: [1KiB]
)");
  EXPECT_EQ(stream.cells[0].id, "t/x|plaintext|testbed.offloads.tso=off|phases.measure=2s|load.reply=1KiB");
  const Json& factors = stream.cells[0].factors;
  EXPECT_EQ(factors["direction"], "up");
  EXPECT_FALSE(factors.contains("reply_bytes"));
  EXPECT_EQ(factors["testbed.offloads.tso"], false);
  EXPECT_EQ(factors["phases.measure_ns"], 2'000'000'000);
  EXPECT_EQ(factors["load.reply_bytes"], 1024);
}

TEST(Plan, BlocksArePermutationsAndTheSeedDecides) {
  const std::string yaml = kBase + "matrix: {load.streams: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n";
  const RunPlan p = plan(yaml);
  ASSERT_EQ(p.rounds.size(), 40u);
  std::vector<std::vector<size_t>> blocks(2);
  for (size_t i = 0; i < p.rounds.size(); ++i) {
    EXPECT_EQ(p.rounds[i].order, static_cast<int>(i));
    EXPECT_EQ(p.rounds[i].block, static_cast<int>(i / 20));
    blocks[i / 20].push_back(p.rounds[i].cell);
  }
  EXPECT_NE(blocks[0], blocks[1]);
  for (const auto& block : blocks) EXPECT_EQ(std::set<size_t>(block.begin(), block.end()).size(), 20u);
  EXPECT_EQ(to_json(plan(yaml)), to_json(p));

  const RunPlan other = plan(yaml, {.settings = {"seed=8"}});
  EXPECT_EQ(other.seed, 8u);
  EXPECT_NE(to_json(other)["rounds"], to_json(p)["rounds"]);
}

TEST(Plan, FirstPlacesAreSpreadEvenly) {
  // Pearson's chi-square over which of 4 cells comes first in 1000 blocks: below the 99.99 % point of 3
  // degrees.
  std::map<size_t, double> first;
  const auto rounds = schedule({1000, 1000, 1000, 1000}, 3);
  for (size_t i = 0; i < rounds.size(); i += 4) ++first[rounds[i].cell];
  double chi_square = 0;
  for (size_t cell = 0; cell < 4; ++cell) chi_square += (first[cell] - 250) * (first[cell] - 250) / 250;
  EXPECT_LT(chi_square, 21.1);
}

TEST(Plan, ScenariosWithFewerRepetitionsStopEarlier) {
  const auto rounds = schedule({1, 3}, 1);
  std::map<std::pair<int, size_t>, int> seen;
  for (const PlannedRound& round : rounds) ++seen[{round.block, round.cell}];
  const std::map<std::pair<int, size_t>, int> expected = {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 1}, 1}, {{2, 1}, 1}};
  EXPECT_EQ(seen, expected);
}

TEST(Plan, ProfilesOverlayTheFile) {
  const std::string yaml = kBase + R"(
phases: {warm_up: 1s, measure: 2s}
testbed: {sysctls: {client: {net.core.somaxconn: 1, net.ipv4.tcp_rmem: 1 2 3}}}
matrix: {load.payload: [1KiB, 2KiB], load.streams: [1, 10]}
profiles:
  fixed: {load: {payload: 8KiB}}
  other: {transports: [wireguard], seed: 9, repetitions: 1, phases: {measure: 3s}, matrix: {load.payload: [4KiB]},
          testbed: {sysctls: {client: {net.core.somaxconn: 2}}}}
)";
  EXPECT_EQ(plan(yaml).cells.size(), 8u);
  EXPECT_EQ(plan(yaml, {.profile = "full"}).cells.size(), 8u);
  const RunPlan fixed = plan(yaml, {.profile = "fixed"});
  EXPECT_EQ(ids(fixed)[0], "t/x|plaintext|load.streams=1");
  EXPECT_EQ(fixed.cells[0].config.load.payload_bytes, 8192u);

  const RunPlan other = plan(yaml, {.profile = "other"});
  EXPECT_EQ(ids(other), (std::vector<std::string>{"t/x|wireguard|load.payload=4KiB|load.streams=1",
                                                  "t/x|wireguard|load.payload=4KiB|load.streams=10"}));
  EXPECT_EQ(other.profile, "other");
  EXPECT_EQ(other.seed, 9u);
  EXPECT_EQ(other.repetitions, 1);
  EXPECT_EQ(other.cells[0].config.phases.warm_up, 1'000'000'000);
  EXPECT_EQ(other.cells[0].config.phases.measure, 3'000'000'000);
  EXPECT_EQ(other.cells[0].config.testbed.sysctls_client.at("net.core.somaxconn"), "2");
  EXPECT_EQ(other.cells[0].config.testbed.sysctls_client.at("net.ipv4.tcp_rmem"), "1 2 3");

  EXPECT_EQ(error_of(yaml, {.profile = "othr"}), "x.yaml: no profile 'othr'; nearest: 'other'");
}

TEST(Plan, SettingsComeLast) {
  const std::string yaml =
      kBase + "matrix: {load.payload: [1KiB, 2KiB]}\nprofiles: {p: {load: {streams: 3}}}\n";
  const RunPlan p =
      plan(yaml, {.profile = "p",
                  .settings = {"load.streams=4", "load.payload=64KiB", "transports=mtls,wireguard+tls",
                               "placement.client=0,2", "worker.environment.PATH=/a,/b=c", "repetitions=3"}});
  EXPECT_EQ(ids(p), (std::vector<std::string>{"t/x|mtls", "t/x|wireguard+tls+openssl"}));
  const CellConfig& config = p.cells[0].config;
  EXPECT_EQ(config.load.streams, 4u);
  EXPECT_EQ(config.load.payload_bytes, 65536u);
  EXPECT_EQ(config.placement.client, (std::vector<int>{0, 2}));
  EXPECT_EQ(config.worker.environment.at("PATH"), "/a,/b=c");
  EXPECT_EQ(p.repetitions, 3);

  const RunPlan swept = plan(yaml, {.settings = {"load.streams=1,10"}});
  EXPECT_EQ(swept.cells.size(), 8u);
  EXPECT_EQ(ids(swept)[1], "t/x|plaintext|load.payload=1KiB|load.streams=10");
  EXPECT_EQ(plan(yaml, {.settings = {"load.streams=1,10", "load.streams=5"}}).cells.size(), 4u);
}

TEST(Plan, BadSettingsNameTheOption) {
  const auto error = [](const std::string& setting) { return error_of(kBase, {.settings = {setting}}); };
  EXPECT_EQ(
      error("load.payload=64kib"),
      "--set load.payload=64kib: load.payload: '64kib': unknown unit 'kib'; use one of B, KiB, MiB, GiB, kB, "
      "MB, GB");
  EXPECT_EQ(error("load.paylod=1"),
            "--set load.paylod=1: unknown key 'load.paylod'; nearest: 'load.payload'");
  EXPECT_EQ(error("load.payload"), "--set load.payload: no '='; write key=value");
  EXPECT_EQ(error("id=x"), "--set id=x: id can't be set here");
  EXPECT_EQ(error("matrix=x"), "--set matrix=x: matrix can't be set here");
  EXPECT_EQ(error("load=x"), "--set load=x: load is not a single setting");
  EXPECT_EQ(error("transports=mtls,"),
            "--set transports=mtls,: transport '': unknown; known: plaintext, wireguard, "
            "wireguard-go, wireguard-gpu, mtls, mtls-ktls, mtls-dpdk, mtls-cuda, null");
  EXPECT_EQ(error("transports="), "--set transports=: transports: needs at least one");
  EXPECT_EQ(error("load.streams=1,1"), "--set load.streams=1,1: load.streams: '1' stands twice");
  EXPECT_EQ(error("load.streams=1,0"), "--set load.streams=1,0: load.streams: 0 is outside 1..10000");
  EXPECT_EQ(error("worker.binary=\xff"), "--set worker.binary=?: not UTF-8 text");
  EXPECT_EQ(error("phases.min_samples=1"),
            "--set phases.min_samples=1: phases.max_duration 0s is less than phases.measure 120s; "
            "min_samples needs "
            "at least 120s");
  EXPECT_NE(error("=1"), "");
  EXPECT_NE(error(""), "");
}

TEST(Plan, ArmsAreAFactor) {
  PlanRequest request;
  for (const char* text :
       {"base:", "new:worker.binary=/opt/new", "new:testbed.sysctls.client.net.core.somaxconn=9"}) {
    auto arm = parse_arm(text);
    ASSERT_TRUE(arm) << text;
    request.arms.push_back(*arm);
  }
  const RunPlan p = plan(kBase, request);
  EXPECT_EQ(ids(p), (std::vector<std::string>{"t/x|plaintext|arm=base", "t/x|mtls|arm=base",
                                              "t/x|plaintext|arm=new", "t/x|mtls|arm=new"}));
  EXPECT_EQ(p.cells[0].config.worker.binary, "");
  EXPECT_EQ(p.cells[2].config.worker.binary, "/opt/new");
  EXPECT_EQ(p.cells[2].config.testbed.sysctls_client.at("net.core.somaxconn"), "9");
  EXPECT_EQ(p.cells[2].arm, "new");
  EXPECT_EQ(p.cells[2].factors["arm"], "new");
}

TEST(Plan, BadArmsNameTheOption) {
  EXPECT_EQ(parse_arm("load.streams=1").error().message(),
            "--arm 'load.streams=1': no name; write NAME:key=value");
  EXPECT_FALSE(parse_arm(":load.streams=1"));
  EXPECT_FALSE(parse_arm("a b:load.streams=1"));
  EXPECT_FALSE(parse_arm(""));
  EXPECT_EQ(parse_arm("a:worker.binary=/x:y")->settings, std::vector<std::string>{"worker.binary=/x:y"});
  const auto error = [](const std::string& setting) {
    return error_of(kBase + "matrix: {load.streams: [1, 10]}\n", {.arms = {{"a", {setting}}}});
  };
  EXPECT_EQ(error("load.wait=idle"),
            "--arm a:load.wait=idle: load.wait: unknown value 'idle'; known: block, busy");
  EXPECT_EQ(error("seed=1"), "--arm a:seed=1: seed can't be set here");
  EXPECT_EQ(error("load.payload=1,2"),
            "--arm a:load.payload=1,2: load.payload: an arm has one value; make one arm of each");
  EXPECT_EQ(error("load.streams=5"),
            "--arm a:load.streams=5: load.streams is swept by t/x; fix it first with --set load.streams=…");
}

TEST(Plan, ResolvedDocumentIsAScenarioThatMakesTheSamePlan) {
  const std::string yaml = kBase + R"(
title: "A \"title\""
description: "two\nlines"
testbed: {ip: 6, offloads: {tso: off}, sysctls: {server: {net.ipv4.tcp_rmem: 1 2 3}}}
tls: {resumption: on}
worker: {environment: {A: "x,y"}}
matrix: {load.payload: [1KiB, 65536], load.streams: [1, 10], testbed.offloads.gro: [on, off]}
)";
  const RunPlan p = plan(yaml, {.settings = {"phases.measure=1500ms", "transports=wireguard+tls,mtls"}});
  const RunPlan again = plan(dump_json(p.scenarios[0].resolved));
  EXPECT_EQ(dump_json(to_json(again)), dump_json(to_json(p)));
  // However it was written, it resolves to the same: digests compare scenarios, not spellings.
  const RunPlan spelt =
      plan(yaml, {.settings = {"phases.measure=1.5s", "transports=wireguard+tls+openssl,none+tls"}});
  EXPECT_EQ(dump_json(spelt.scenarios[0].resolved), dump_json(p.scenarios[0].resolved));
}

}  // namespace
}  // namespace fsbl
