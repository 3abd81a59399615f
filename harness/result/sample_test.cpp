#include "harness/result/sample_for_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/core/file.h"
#include "harness/core/random.h"
#include "harness/scenario/load.h"

namespace fsbl {
namespace {

constexpr int kBlocks = 3;
constexpr uint64_t kSeed = 7;
const std::filesystem::path kSampleDir =
    std::filesystem::path(FSBL_SOURCE_DIR) / "reports" / "testdata" / "sample";

struct SampleTransport {
  const char *name, *tunnel, *session, *engine, *label, *family;
  int64_t latency_ns_64k, latency_ns_1m;  // about the median
  double gbps;                            // one stream
  double cpu_ns_per_byte;
  const char *reason, *fix;  // empty: measured
};

constexpr SampleTransport kTransports[] = {
    {"plaintext", "none", "plain", "", "plaintext", "plaintext", 45'000, 520'000, 15.2, 0.45, "", ""},
    {"wireguard", "wireguard", "plain", "", "WireGuard · kernel", "WireGuard", 0, 0, 0, 0,
     "the kernel has no WireGuard device (EOPNOTSUPP)", "load the module wireguard, or use wireguard-go"},
    {"wireguard-go", "wireguard-go", "plain", "", "WireGuard · wireguard-go (CPU)", "WireGuard", 610'000,
     12'800'000, 0.62, 11.5, "", ""},
    {"mtls", "none", "tls", "openssl", "mTLS · OpenSSL (CPU)", "software mTLS", 78'000, 790'000, 9.4, 0.92,
     "", ""},
    {"mtls-ktls", "none", "tls", "ktls", "mTLS · kTLS (kernel)", "offloaded mTLS", 0, 0, 0, 0,
     "the kernel has no TLS ULP (ENOENT)", "load the module tls"},
    {"mtls-dpdk", "none", "tls", "cryptodev", "mTLS · cryptodev aesni_gcm (CPU)", "offloaded mTLS", 0, 0, 0,
     0, "the engine module cryptodev is not installed", "install DPDK 22.11 and build with it"},
    {"wireguard-gpu", "wireguard-gpu", "plain", "", "WireGuard · GPU", "WireGuard", 0, 0, 0, 0,
     "no CUDA device", "run on a host with an NVIDIA GPU"},
    {"mtls-cuda", "none", "tls", "cuda", "mTLS · CUDA", "offloaded mTLS", 0, 0, 0, 0, "no CUDA device",
     "run on a host with an NVIDIA GPU"},
};

bool measured(const SampleTransport& transport) {
  return *transport.reason == '\0';
}

Composition composition(const SampleTransport& transport) {
  return {transport.name, transport.tunnel, transport.session, transport.engine};
}

// Uniform in [-1, 1] in steps of a thousandth.
double noise(SplitMix64& random) {
  return (static_cast<double>(random.below(2001)) - 1000) / 1000;
}

std::string at_second(int second) {
  return fmt::format("2026-11-30T20:{:02}:{:02}.000Z", 10 + second / 60, second % 60);
}

constexpr const char* kLatency = R"(
id: fsbl/latency
title: FSBL latency baseline
seed: 7
repetitions: 3
transports: [plaintext, wireguard, wireguard-go, wireguard-gpu, mtls, mtls-ktls, mtls-dpdk, mtls-cuda]
load: {shape: request-response, reply: 64B}
phases: {warm_up: 0.5s, measure: 2s, cool_down: 0.1s, min_samples: 299, max_duration: 6s}
matrix:
  load.payload: [64KiB, 1MiB]
)";
constexpr const char* kThroughput = R"(
id: fsbl/throughput
title: FSBL throughput baseline
seed: 7
repetitions: 3
transports: [plaintext, wireguard, wireguard-go, wireguard-gpu, mtls, mtls-ktls, mtls-dpdk, mtls-cuda]
load: {shape: stream, direction: up, payload: 64KiB}
phases: {warm_up: 0.5s, measure: 2s, cool_down: 0.1s}
matrix:
  load.streams: [1, 10, 100]
)";

const SampleTransport& transport_of(const Cell& cell) {
  for (const SampleTransport& transport : kTransports)
    if (cell.config.transport.name == transport.name) return transport;
  return kTransports[0];
}

Series scalar(std::string metric, std::string basis, std::string source, std::string side, std::string unit,
              std::string better, double value) {
  Series series{std::move(metric), std::move(basis), std::move(source), "",    "",          "",
                std::move(side),   std::move(unit),  std::move(better), value, std::nullopt};
  return series;
}

void add_common_series(Round& round, const SampleTransport& transport, SplitMix64& random) {
  for (const char* side : {"client", "server"})
    round.series.push_back(scalar("cpu_ns_per_byte", "window", "procfs", side, "ns/B", "lower",
                                  transport.cpu_ns_per_byte * (1 + 0.03 * noise(random))));
  round.series.push_back(scalar("retransmits", "window", "tcp_info", "client", "1", "lower",
                                static_cast<double>(random.below(3))));
}

// Closed loop: a skewed body, a thin tail, and a rare stall.
void fill_latency(Round& round, const Cell& cell, SplitMix64& random) {
  const SampleTransport& transport = transport_of(cell);
  const bool small = cell.config.load.payload_bytes < (1u << 20);
  const int64_t middle = small ? transport.latency_ns_64k : transport.latency_ns_1m;
  const uint64_t samples = (small ? 4000 : 1200) + random.below(100);
  const auto run_offset = static_cast<int64_t>(static_cast<double>(middle) * 0.02 * noise(random));
  Series latency{"latency",
                 "sent",
                 "worker",
                 "CLOCK_MONOTONIC",
                 "before first byte is sealed",
                 "reply authenticated",
                 "client",
                 "ns",
                 "lower",
                 std::nullopt,
                 Histogram()};
  for (uint64_t i = 0; i < samples; ++i) {
    int64_t value = middle + run_offset;
    for (int j = 0; j < 3; ++j)
      value += static_cast<int64_t>(random.below(static_cast<uint64_t>(middle) / 10));
    if (random.below(50) == 0) value += static_cast<int64_t>(random.below(static_cast<uint64_t>(middle)));
    if (random.below(1000) == 0) value += 3 * middle;
    latency.distribution->record(value);
  }
  const double seconds = latency.distribution->mean() * static_cast<double>(samples) / 1e9;
  round.series.push_back(std::move(latency));
  round.series.push_back(scalar("requests_per_s", "done", "worker", "client", "1/s", "higher",
                                static_cast<double>(samples) / seconds));
  round.accounting = {samples, samples, 0, 0, 0};
}

void fill_throughput(Round& round, const Cell& cell, SplitMix64& random) {
  const uint32_t streams = cell.config.load.streams;
  const double gain = streams == 1 ? 1 : streams == 10 ? 1.35 : 1.1;
  const double rate = transport_of(cell).gbps * 1e9 * gain * (1 + 0.04 * noise(random));
  round.series.push_back(scalar("throughput", "received", "worker", "server", "bit/s", "higher", rate));
  const auto writes =
      static_cast<uint64_t>(rate / 8 * 2 / static_cast<double>(cell.config.load.payload_bytes));
  round.accounting = {writes, writes, 0, 0, 0};
}

LayerProof proof(std::string layer, std::string side, std::string claim, std::string kind,
                 std::string device_class, Evidence evidence) {
  return {std::move(layer),        std::move(side),      claim, claim, Verdict::proved, std::move(kind),
          std::move(device_class), {std::move(evidence)}};
}

void fill_path(Round& round, const Cell& cell) {
  const Composition& transport = cell.config.transport;
  for (const char* side : {"client", "server"}) {
    round.layers.push_back(
        proof("link", side, "eth0 carries the round's bytes", "kernel", "",
              {"rtnetlink counters of eth0", "tx_bytes", 0, 268435456, ">= 67108864", "B"}));
    if (transport.tunnel != "none")
      round.layers.push_back(proof("tunnel", side, "WireGuard by wireguard-go", "self", "cpu",
                                   {"UAPI get of wg0", "tx_bytes", 148, 268435604, ">= 67108864", "B"}));
    if (transport.session == "tls")
      round.layers.push_back(proof("session", side, "TLSv1.3 mutual TLS_AES_256_GCM_SHA384 X25519", "peer",
                                   "cpu",
                                   {"SSL_get_current_cipher", "cipher", nullptr, "TLS_AES_256_GCM_SHA384",
                                    "TLS_AES_256_GCM_SHA384", ""}));
  }
  round.path = combine(round.layers);
}

Json side_details(const Cell& cell, SplitMix64& random) {
  Json details{{"window_ns", 2'000'000'000 + static_cast<int64_t>(random.below(1'000'000))},
               {"bytes", 268435456},
               {"tcp_info", {{"rtt_us", 40 + random.below(20)}, {"snd_mss", 1448}, {"retransmits", 0}}},
               {"cpu", {{"worker_cpu_ns", 1'900'000'000}, {"tunnel_cpu_ns", 0}, {"steal_ns", 2'000'000}}},
               {"interface", {{"tx_bytes", 271000000}, {"rx_bytes", 2400000}}},
               {"offloads", {{"tso", true}, {"gro", true}, {"checksum", true}}},
               {"mtu", 1500}};
  if (cell.config.transport.session == "tls")
    details["negotiated"] = {
        {"version", "TLSv1.3"}, {"cipher", cell.config.tls.cipher}, {"group", cell.config.tls.group}};
  return details;
}

Round make_round(const Cell& cell, int block, int order, SplitMix64& random) {
  Round round;
  round.cell = cell.id;
  round.block = block;
  round.order = order;
  round.started_at = at_second(3 * order);
  round.ended_at = at_second(3 * order + 3);
  if (cell.config.load.shape == Shape::request_response)
    fill_latency(round, cell, random);
  else
    fill_throughput(round, cell, random);
  add_common_series(round, transport_of(cell), random);
  fill_path(round, cell);
  round.attempts = {cell.config.load.streams, cell.config.load.streams, {}};
  for (const char* side : {"client", "server"})
    round.missing.push_back({"perf cycles", side, "the host has no PMU (ENOENT)"});
  round.details = {{"client", side_details(cell, random)}, {"server", side_details(cell, random)}};
  if (cell.id == "fsbl/latency|mtls|load.payload=1MiB" && block == 1) {
    round.status = "invalid";
    round.flags.push_back({"steal", 0.081, 0.02, true});
  }
  if (order == 4) round.flags.push_back({"frequency-unknown", "no cpufreq on this host", nullptr, false});
  return round;
}

std::vector<Round> make_rounds(const std::vector<Cell>& cells) {
  std::vector<Round> rounds;
  SplitMix64 random(kSeed);
  for (int block = 0; block < kBlocks; ++block) {
    std::vector<size_t> order(cells.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    seeded_shuffle(order, random);
    for (const size_t i : order)
      rounds.push_back(make_round(cells[i], block, static_cast<int>(rounds.size()), random));
  }
  return rounds;
}

// The scenario, and the cells of the transports that "this host" can run.
void add_scenario(Result& result, const std::string& yaml, const std::string& path) {
  const RunPlan plan = plan_text(yaml, path, {}).value();
  for (ResolvedScenario scenario : plan.scenarios) {
    scenario.path = path;
    scenario.digest = "sha256:" + sha256_hex(canonical_json(scenario.resolved));
    result.scenarios.push_back(std::move(scenario));
  }
  for (const Cell& cell : plan.cells)
    if (measured(transport_of(cell))) result.cells.push_back(cell);
}

Json host(const std::string& role) {
  Json environment{{"cpu", {{"model", "Example CPU"}, {"cores", 2}, {"numa_nodes", 1}}},
                   {"memory_bytes", 8589934592},
                   {"kernel", {{"release", "6.1.0"}}},
                   {"os", "Debian GNU/Linux 12 (bookworm)"},
                   {"virtual_machine", "kvm"},
                   {"libraries", {{"openssl", "3.0.19"}}},
                   {"link", {{"name", "eth0"}, {"driver", "veth"}, {"mtu", 1500}}}};
  const std::string digest = "sha256:" + sha256_hex(canonical_json(environment));
  return {{"role", role}, {"environment", std::move(environment)}, {"environment_digest", digest}};
}

}  // namespace

Result sample_result() {
  Result result;
  result.run = {{"id", "20261130T201000Z-fsbl-0badcafe"},
                {"started_at", at_second(0)},
                {"ended_at", at_second(3 * 45)},
                {"boot_id", "0f0f0f0f-1111-4222-8333-444444444444"},
                {"clock_sync", "unknown"},
                {"harness_commit", "0123456789abcdef0123456789abcdef01234567"},
                {"dirty", false},
                {"binary_sha256", {{"fsbl", sha256_hex("fsbl")}, {"fsbl-worker", sha256_hex("fsbl-worker")}}},
                {"version", "0.1.0"},
                {"scope", "lab"},
                {"profile", "quick"},
                {"seed", kSeed},
                {"complete", true}};
  add_scenario(result, kLatency, "scenarios/fsbl/latency.yaml");
  add_scenario(result, kThroughput, "scenarios/fsbl/throughput.yaml");
  result.testbed = {{"id", "netns"}, {"kind", "netns"}, {"hosts", {host("client"), host("server")}}};
  for (const SampleTransport& transport : kTransports)
    result.transports.push_back({composition(transport), transport.label, transport.family,
                                 measured(transport), transport.reason, transport.fix});
  result.rounds = make_rounds(result.cells);
  result.summary = summarise(result.cells, result.rounds);
  LogFile log{"logs/handshakes.jsonl", "", 0, ""};
  for (const Round& round : result.rounds)
    if (round.layers.size() > 2 && round.cell.find("|mtls|") != std::string::npos) {
      const Json entry{
          {"at", round.started_at}, {"cell", round.cell}, {"kind", "full"}, {"ns", 810'000 + round.order}};
      log.content += dump_json(entry) + "\n";
      ++log.entries;
    }
  log.sha256 = sha256_hex(log.content);
  log.bytes = log.content.size();
  result.logs = {std::move(log)};
  return result;
}

namespace {

// The published sample is what this generator makes. Compared as JSON: another zlib may compress otherwise.
TEST(Sample, FilesAreTheGeneratorsOutput) {
  Result sample = sample_result();
  if (std::getenv("FSBL_WRITE_SAMPLE")) {
    ASSERT_TRUE(write_result(kSampleDir, sample));
  }
  const auto read = read_result(kSampleDir);
  ASSERT_TRUE(read) << read.error().message();
  const Json expected = to_json(sample), found = to_json(*read);
  EXPECT_TRUE(expected == found)
      << "differs at " << Json::diff(found, expected).dump(1).substr(0, 2000)
      << "\nif that is meant: FSBL_WRITE_SAMPLE=1 result_test --gtest_filter=Sample.*";
  EXPECT_EQ(sha256_file(kSampleDir / sample.logs.at(0).path).value(), sample.logs.at(0).sha256);
}

TEST(Sample, IsTheSameEveryTime) {
  EXPECT_EQ(dump_json(to_json(sample_result())), dump_json(to_json(sample_result())));
}

}  // namespace
}  // namespace fsbl
