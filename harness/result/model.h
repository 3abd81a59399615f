// The result file in memory (schema 1.0; reports/schema/result.schema.json is the published form). Everything
// a person reads later is made from it. Times: RFC 3339 UTC text; fine times in ns relative to the round's
// start.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/json.h"
#include "harness/result/path.h"
#include "harness/scenario/model.h"
#include "harness/stats/histogram.h"
#include "harness/stats/interval.h"

namespace fsbl {

inline constexpr const char* kResultSchema = "1.0";

struct Flag {
  std::string code;  // "bytes-unreconciled", "generator-saturated", "steal", "worker-died", ...
  Json value, limit;
  bool invalidates = true;  // false: noted, the round stays valid
};

struct Series {
  std::string metric;    // "latency", "throughput", "requests_per_s", "cpu_ns_per_byte", "retransmits", ...
  std::string basis;     // "sent", "intended", "received", ...
  std::string source;    // "worker", "tcp_info", "perf", "procfs", "rtnetlink"
  std::string clock;     // "CLOCK_MONOTONIC" or empty
  std::string from, to;  // what the time spans: "before first byte is sealed" → "reply authenticated"
  std::string side;      // "client", "server", or empty
  std::string unit;      // "ns", "bit/s", "1/s", "ns/B", "1"
  std::string better;    // "lower", "higher", or empty
  std::optional<double> value;
  std::optional<Histogram> distribution;
};

struct Missing {
  std::string name, side, reason;
};

struct Accounting {  // conservation: planned = done + failed + outstanding_at_end + unsent
  uint64_t planned = 0, done = 0, failed = 0, outstanding_at_end = 0, unsent = 0;
};

struct Attempts {  // connections
  uint64_t planned = 0, accepted = 0;
  std::map<std::string, uint64_t> refused_by_reason;
};

struct Round {
  std::string cell;
  int block = 0, order = 0;
  std::string started_at, ended_at;
  std::vector<Flag> flags;
  Verdict path = Verdict::unproven;
  std::vector<LayerProof> layers;
  std::vector<Series> series;
  Accounting accounting;
  Attempts attempts;
  std::vector<Missing> missing;
  Json details;  // per side: window_ns, bytes, tcp_info, cpu, perf, interface, offloads, negotiated ...
  // "valid" unless a flag invalidates; "failed" when it never measured (then flags say why).
  std::string status = "valid";
};

struct TransportStatus {  // one per transport and scenario of the plan; keeps the row of what can't run
  Composition composition;
  std::string label, family;
  bool measured = false;
  std::string reason, fix;  // why not
};

struct SummaryRow {
  std::string cell, metric, basis, side, unit, better;
  std::optional<double> quantile;  // for distributions: 0.5, 0.95, 0.99, 0.999, 1 (max)
  std::optional<double> value;     // nullopt: n/a, with `note` saying why
  std::optional<Interval> interval;
  size_t n = 0;          // runs
  uint64_t samples = 0;  // samples behind the quantile, all runs together
  bool pooled = false;   // merged histogram's quantile because runs had too few samples
  std::optional<double> cv;
  std::optional<Ratio> ratio_to_plaintext;
  std::string note;  // "n/a (n=120)"
};

struct LogFile {
  std::string path;  // "logs/handshakes.jsonl"
  std::string sha256;
  uint64_t entries = 0;
  std::string content;  // in memory until written
  uint64_t bytes = 0;   // the digest is over these first bytes; a log only grows while its run goes on
};

struct Result {
  Json run;  // {id, started_at, ended_at, boot_id, clock_sync, harness_commit, dirty,
             //  binary_sha256{}, version, operator?, scope, profile, seed, complete}
  std::vector<ResolvedScenario> scenarios;
  Json testbed;  // {id, kind, emulated?, hosts[] {role, environment, environment_digest}}
  std::vector<TransportStatus> transports;
  std::vector<Cell> cells;
  std::vector<Round> rounds;
  std::vector<SummaryRow> summary;
  std::vector<LogFile> logs;
};

// summary[] from rounds[] (valid rounds only), by METHOD.md: median of per-run values when each run has
// enough samples for the quantile, otherwise the pooled quantile without interval; ratios to the plaintext
// cell that differs in the transport (and its TLS settings) alone, paired within blocks; between pooled
// quantiles the ratio is that of the values, without interval. Scalar metrics have no quantile. The maximum
// (quantile 1) is the largest of all runs, with neither interval nor ratio. A cell without a valid round
// keeps its rows, as n/a. Outlying runs and clipped samples are named in the note, never left out.
std::vector<SummaryRow> summarise(const std::vector<Cell>& cells, const std::vector<Round>& rounds);

Json to_json(const Result& result);
// Refuses another major by name, damaged files and non-results, naming the place; ignores unknown fields.
// `name` is the file, for messages.
Expected<Result> result_from_json(const Json& json, const std::string& name);

// Writes DIR/result.json and DIR/logs/*.jsonl, each whole or not at all; logs first, so that a result never
// names a log that is not there. Creates DIR. Fills LogFile::sha256. A log that has a digest but no content
// was written earlier and stays as it is.
Expected<> write_result(const std::filesystem::path& dir, Result& result);
// RESULT on the command line: a file, or a folder with result.json.
Expected<Result> read_result(const std::filesystem::path& file_or_dir);
Expected<std::filesystem::path> result_file(const std::filesystem::path& file_or_dir);

std::string sha256_hex(std::string_view data);
Expected<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace fsbl
