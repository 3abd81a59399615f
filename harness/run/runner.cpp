#include "harness/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <random>

#include "fsbl_version.h"
#include "harness/core/cancel.h"
#include "harness/core/file.h"
#include "harness/core/log.h"
#include "harness/run/engine_check.h"
#include "harness/run/placement.h"
#include "harness/run/round_runner.h"
#include "harness/scenario/load.h"

namespace fsbl {
namespace {

// What a round costs beside its phases: workers, keys, handshakes, tunnel.
constexpr Nanos kRoundOverhead = 450'000'000;

Nanos planned_time(const PhaseConfig& phases) {
  return phases.warm_up + phases.measure + phases.cool_down + kRoundOverhead;
}

class Runner {
 public:
  explicit Runner(RunRequest request) : request_(std::move(request)) {}
  Expected<RunOutcome> run();

 private:
  Expected<> choose_transports();
  Expected<std::string> label_by_engine(const Composition& composition);
  void describe_run();
  Expected<> run_one(const PlannedRound& planned);
  Expected<> ensure_testbed(const CellConfig& config);
  Expected<> write(bool complete);
  void report(size_t done, size_t total, const std::string& cell, const Round* ended);

  RunRequest request_;
  RunOutcome outcome_;
  std::optional<SvidAuthority> authority_;
  std::unique_ptr<LiveTestbed> testbed_;
  std::string testbed_key_;
  RunLogs logs_;
  std::vector<PlannedRound> rounds_;
  Nanos time_spent_ = 0, time_planned_for_done_ = 0;
};

// What the devices of a transport's record engine say of themselves, over all its cells: one label for the transport,
// so several devices are named side by side. An engine that some of its cells can't use is an error, not a gap.
Expected<std::string> Runner::label_by_engine(const Composition& composition) {
  std::vector<std::string> labels;
  std::set<std::string> asked;
  for (const Cell& cell : request_.plan.cells) {
    const CellConfig& config = cell.config;
    if (config.transport.name != composition.name) continue;
    const Json asks = {config.crypto.device, config.tls.cipher, config.placement.client.size(), config.placement.server.size(),
                       config.worker.binary, config.worker.environment};
    if (!asked.insert(dump_json(asks)).second) continue;
    FSBL_ASSIGN(const Json facts, check_engine(config));
    std::string text = label(composition, facts);
    if (std::find(labels.begin(), labels.end(), text) == labels.end()) labels.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(labels, ", "));
}

Expected<> Runner::choose_transports() {
  std::map<std::string, bool> usable_by_name;
  for (const Cell& cell : request_.plan.cells) {
    const Composition& composition = cell.config.transport;
    if (usable_by_name.contains(composition.name)) continue;
    TransportStatus status{composition, label(composition), family(composition), true, "", ""};
    auto can = usable(composition, request_.host);
    if (can) {
      auto text = label_by_engine(composition);
      if (text) status.label = std::move(*text);
      else can = tl::unexpected(text.error());
    }
    if (!can) {
      if (can.error().kind == ErrorKind::bad_input) return tl::unexpected(can.error());
      status.measured = false;
      status.reason = can.error().why;
      status.fix = can.error().fix;
    }
    usable_by_name[composition.name] = status.measured;
    outcome_.result.transports.push_back(std::move(status));
  }
  const auto status_of = [&](const std::string& name) {
    return std::find_if(outcome_.result.transports.begin(), outcome_.result.transports.end(),
                        [&](const TransportStatus& s) { return s.composition.name == name; });
  };
  for (const std::string& name : request_.require) {
    const auto status = status_of(name);
    if (status == outcome_.result.transports.end())
      return bad_input("--require " + name, "no scenario of this run has it", "add it with --set transports=...");
    if (!status->measured) return unavailable("required transport " + name, status->reason, status->fix);
  }
  // Cells that can run, renumbered; the others keep their row through transports[].
  std::vector<size_t> new_index(request_.plan.cells.size(), SIZE_MAX);
  const std::vector<int> cpus = allowed_cpus();
  for (size_t i = 0; i < request_.plan.cells.size(); ++i) {
    if (!usable_by_name[request_.plan.cells[i].config.transport.name]) continue;
    FSBL_TRY(settle_placement(request_.plan.cells[i].config.placement, cpus));
    new_index[i] = outcome_.result.cells.size();
    outcome_.result.cells.push_back(request_.plan.cells[i]);
  }
  for (PlannedRound round : request_.plan.rounds) {
    if (new_index[round.cell] == SIZE_MAX) continue;
    round.cell = new_index[round.cell];
    round.order = static_cast<int>(rounds_.size());
    rounds_.push_back(round);
  }
  if (!rounds_.empty()) return {};
  const TransportStatus& first = outcome_.result.transports.front();
  return unavailable("run", "no transport of this run can be used here; " + first.composition.name + ": " + first.reason,
                     first.fix.empty() ? "see `fsbl doctor`" : first.fix);
}

void Runner::describe_run() {
  Result& result = outcome_.result;
  result.scenarios = request_.plan.scenarios;
  for (ResolvedScenario& scenario : result.scenarios) scenario.digest = "sha256:" + sha256_hex(canonical_json(scenario.resolved));
  Json binaries = Json::object();
  const bool module = find_engine("cryptodev") && find_engine("cryptodev")->usable(request_.host).has_value();
  for (const char* name : {"fsbl", "fsbl-agent", "fsbl-worker", "fsbl-cryptodev.so"}) {
    if (name == std::string("fsbl-cryptodev.so") && !module) continue;
    const auto digest = sha256_file(name == std::string("fsbl") ? std::filesystem::path("/proc/self/exe") : program_path(name));
    binaries[name] = digest ? *digest : "missing: " + digest.error().why;
  }
  result.run = {{"id", request_.out.filename().string()}, {"started_at", utc_now()}, {"ended_at", nullptr},
                {"boot_id", read_small("/proc/sys/kernel/random/boot_id", "missing: unreadable")},
                {"harness_commit", FSBL_COMMIT}, {"dirty", FSBL_DIRTY}, {"version", FSBL_VERSION},
                {"binary_sha256", binaries}, {"scope", "lab"}, {"profile", request_.plan.profile.empty() ? "full" : request_.plan.profile},
                {"seed", request_.plan.seed}, {"repetitions", request_.plan.repetitions}, {"complete", false}};
  if (!request_.operator_name.empty()) result.run["operator"] = request_.operator_name;
  result.testbed = {{"id", "netns"}, {"kind", "netns"}, {"hosts", Json::array()}};
}

// Rounds with the same testbed settings share one; a change (MTU, address family, sysctls of an arm) makes a new one.
Expected<> Runner::ensure_testbed(const CellConfig& config) {
  const std::string key = canonical_json(to_json(config)["testbed"]);
  if (testbed_ && key == testbed_key_) return {};
  testbed_.reset();
  FSBL_ASSIGN(testbed_, LiveTestbed::start(config));
  testbed_key_ = key;
  Json& hosts = outcome_.result.testbed["hosts"];
  if (!hosts.empty()) return {};
  for (Role role : {Role::client, Role::server}) {
    Json host = testbed_->hosts()[index_of(role)];
    host["role"] = to_text(role);
    host["agent"] = testbed_->agent(role).hello();
    hosts.push_back(std::move(host));
  }
  outcome_.result.run["clock_sync"] = hosts[0]["environment"].value("clock_sync", Json("missing: not reported"));
  return {};
}

Expected<> Runner::run_one(const PlannedRound& planned) {
  const Cell& cell = outcome_.result.cells[planned.cell];
  Round round;
  round.cell = cell.id;
  round.block = planned.block;
  round.order = planned.order;
  round.started_at = utc_now();
  round.details = Json::object();
  auto done = ensure_testbed(cell.config);
  if (done) {
    for (Role role : {Role::client, Role::server}) {
      const Json& host = testbed_->hosts()[index_of(role)];  // as read back: an arm may have changed it
      round.details["testbed"][to_text(role)] = {{"sysctls", host.value("sysctls", Json::object())},
                                                 {"offloads", host.value("offloads", Json::object())}};
    }
    try {
      done = run_round(*testbed_, cell, *authority_, request_.plan.seed + static_cast<uint64_t>(planned.order), round, logs_);
    } catch (const Json::exception& error) {  // a worker of another make may answer anything
      done = fault("read the round", std::string("malformed reply: ") + error.what());
    }
  }
  round.ended_at = utc_now();
  if (!done) {
    testbed_.reset();  // whatever state it is in: the next round gets a fresh one
    if (done.error().kind == ErrorKind::cancelled || done.error().kind == ErrorKind::bad_input) return done;
    round.status = "failed";
    round.flags.push_back({"round-failed", done.error().message(), "a finished round", true});
    log_warning(fmt::format("{} block {}: {}", cell.id, planned.block, done.error().message()));
  }
  outcome_.failed += round.status == "failed";
  outcome_.invalid += round.status == "invalid";
  outcome_.result.rounds.push_back(std::move(round));
  return {};
}

Expected<> Runner::write(bool complete) {
  Result& result = outcome_.result;
  result.run["ended_at"] = utc_now();
  result.run["complete"] = complete;
  result.logs = {{"logs/handshakes.jsonl", "", logs_.handshake_entries, logs_.handshakes},
                 {"logs/issuance.jsonl", "", logs_.issuance_entries, logs_.issuance},
                 {"logs/refusals.jsonl", "", logs_.refusal_entries, logs_.refusals}};
  result.summary = summarise(result.cells, result.rounds);
  return write_result(request_.out, result);
}

void Runner::report(size_t done, size_t total, const std::string& cell, const Round* ended) {
  if (!request_.progress) return;
  Nanos planned = 0;
  for (size_t i = done; i < rounds_.size(); ++i) planned += planned_time(outcome_.result.cells[rounds_[i].cell].config.phases);
  const double stretch = time_planned_for_done_ > 0 ? static_cast<double>(time_spent_) / static_cast<double>(time_planned_for_done_) : 1.0;
  request_.progress({done, total, cell, static_cast<Nanos>(static_cast<double>(planned) * stretch), ended});
}

Expected<RunOutcome> Runner::run() {
  FSBL_TRY(choose_transports());
  describe_run();
  FSBL_ASSIGN(auto authority, SvidAuthority::create("fsbl.test"));
  authority_.emplace(std::move(authority));
  for (size_t i = 0; i < rounds_.size() && !outcome_.cancelled; ++i) {
    const Cell& cell = outcome_.result.cells[rounds_[i].cell];
    report(i, rounds_.size(), cell.id, nullptr);
    const Nanos before = mono_now_ns();
    if (auto done = cancel_asked() ? Expected<>(cancelled("run")) : run_one(rounds_[i]); !done) {
      if (done.error().kind != ErrorKind::cancelled) return tl::unexpected(done.error());
      outcome_.cancelled = true;
      break;
    }
    time_spent_ += mono_now_ns() - before;
    time_planned_for_done_ += planned_time(cell.config.phases);
    FSBL_TRY(write(i + 1 == rounds_.size()));
    report(i + 1, rounds_.size(), cell.id, &outcome_.result.rounds.back());
  }
  testbed_.reset();
  return std::move(outcome_);
}

}  // namespace

Expected<RunOutcome> run(RunRequest request) { return Runner(std::move(request)).run(); }

}  // namespace fsbl
