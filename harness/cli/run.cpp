#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>

#include "harness/cli/command.h"
#include "harness/cli/host.h"
#include "harness/cli/progress.h"
#include "harness/cli/report_tool.h"
#include "harness/core/cancel.h"
#include "harness/core/log.h"
#include "harness/run/runner.h"
#include "harness/scenario/load.h"

namespace fsbl {
namespace {
namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> scenarios, settings, arms, require;
  std::string profile, out, testbed = "netns", operator_name;
  bool dry_run = false, quiet = false, json = false;
};

fs::path default_out(const RunPlan& plan) {
  std::string name = plan.scenarios.empty() ? "run" : plan.scenarios[0].id;
  if (plan.scenarios.size() > 1) name += fmt::format("+{}", plan.scenarios.size() - 1);
  for (char& c : name)
    if (c == '/') c = '-';
  return fs::path("results") / fmt::format("{}-{}-{:08x}", utc_now_compact(), name, std::random_device{}());
}

// A run of hours must not end with nowhere to put its result. The folder is made to see, and taken away again: a run
// without a finished round leaves none. (Its parents stay: another run may be about to use them.)
Expected<> try_folder(const fs::path& out) {
  std::error_code error, ignored;
  const bool made = fs::create_directories(out, error);
  std::string why = error ? errno_text(error.value()) : "";
  if (!error && access(out.c_str(), W_OK | X_OK) != 0) why = errno_text(errno);
  if (made) fs::remove(out, ignored);
  if (!why.empty()) return bad_input("--out " + out.string(), why, "choose another folder");
  return {};
}

// results/latest → the new folder, when it lies in a folder called results.
void point_latest(const fs::path& out) {
  if (out.parent_path().filename() != "results") return;
  std::error_code error;
  const fs::path latest = out.parent_path() / "latest";
  const fs::path fresh = out.parent_path() / fmt::format(".latest.{:08x}", std::random_device{}());
  if (fs::exists(fs::symlink_status(latest)) && !fs::is_symlink(latest)) return;
  fs::create_directory_symlink(out.filename(), fresh, error);
  if (!error) fs::rename(fresh, latest, error);
  if (error) log_warning("results/latest: " + error.message());
}

// Under sudo the files belong to the invoking user, not to root.
void give_to_invoking_user(const fs::path& out) {
  const char* uid = std::getenv("SUDO_UID");
  const char* gid = std::getenv("SUDO_GID");
  if (!uid || !gid || geteuid() != 0) return;
  const auto give = [&](const fs::path& path) {
    if (lchown(path.c_str(), static_cast<uid_t>(std::atol(uid)), static_cast<gid_t>(std::atol(gid))) != 0)
      log_debug("chown " + path.string() + ": " + errno_text(errno));
  };
  give(out.parent_path());
  give(out.parent_path() / "latest");
  give(out);
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(out, ignored)) give(entry.path());
}

Expected<int> finish(const RunOutcome& outcome, const fs::path& out, const Options& options) {
  if (outcome.result.rounds.empty()) return outcome.cancelled ? Expected<int>(cancelled("run")) : 5;
  point_latest(out);
  const auto text = run_report_tool(out / "result.json", options.json ? "json-stdout" : "text", {});
  if (text) {
    fmt::print("{}", *text);
    if (const auto files = run_report_tool(out / "result.json", "md,csv", out); !files) log_warning(files.error().message());
  } else {
    log_warning(text.error().message());
  }
  give_to_invoking_user(out);
  std::fflush(stdout);
  fmt::print(stderr, "result: {}\n", (out / "result.json").string());
  if (outcome.failed + outcome.invalid > 0)
    fmt::print(stderr, "fsbl run: {} of {} rounds failed, {} invalid; they are marked and left out of the tables\n",
               outcome.failed, outcome.result.rounds.size(), outcome.invalid);
  if (outcome.cancelled) {
    fmt::print(stderr, "fsbl run: cancelled; the finished rounds are kept\n");
    return 130;
  }
  return outcome.failed + outcome.invalid > 0 ? 5 : 0;
}

Expected<int> run_command_body(const Options& options) {
  PlanRequest request;
  request.scenarios = options.scenarios;
  request.profile = options.profile;
  request.settings = options.settings;
  for (const std::string& text : options.arms) {
    FSBL_ASSIGN(Arm arm, parse_arm(text));
    const auto same = std::find_if(request.arms.begin(), request.arms.end(), [&](const Arm& a) { return a.name == arm.name; });
    if (same == request.arms.end()) request.arms.push_back(std::move(arm));
    else same->settings.insert(same->settings.end(), arm.settings.begin(), arm.settings.end());
  }
  if (options.testbed != "netns")
    return bad_input("--testbed " + options.testbed, "not in this build yet", "use --testbed netns");
  FSBL_ASSIGN(RunPlan plan, make_plan(request));
  if (options.dry_run) {
    fmt::print("{}\n", to_json(plan).dump(2));
    return 0;
  }
  const fs::path out = options.out.empty() ? default_out(plan) : fs::path(options.out);
  if (fs::exists(out / "result.json")) return bad_input("--out " + out.string(), "a result is there already", "choose another folder");
  FSBL_TRY(try_folder(fs::absolute(out)));

  RunRequest run_request;
  run_request.host = enter_testbed_host();
  FSBL_TRY(cancel_start());
  run_request.plan = std::move(plan);
  run_request.out = fs::absolute(out);
  run_request.require = options.require;
  run_request.operator_name = options.operator_name;
  ProgressPrinter printer;
  if (!options.quiet) run_request.progress = [&](const Progress& p) { printer.show(p); };
  auto outcome = run(std::move(run_request));
  printer.end();
  if (!outcome) return tl::unexpected(outcome.error());
  return finish(*outcome, fs::absolute(out), options);
}

}  // namespace

CommandBody declare_run(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("SCENARIO", o->scenarios, "ids (`fsbl list scenarios`) or YAML files; several are interleaved in one run")->required();
  app.add_option("--testbed", o->testbed, "netns: two network namespaces on this host")->capture_default_str();
  app.add_option("--profile", o->profile, "full (the file's own values), quick, proof, or one of the scenario's own");
  app.add_option("--set", o->settings, "key=value, e.g. load.payload=4KiB or transports=plaintext,mtls; may be repeated")->allow_extra_args(false);
  app.add_option("--arm", o->arms, "NAME:key=value; two or more arms become a factor of the same interleaved run")->allow_extra_args(false);
  app.add_option("--require", o->require, "exit 4 unless this transport can run here; may be repeated")->allow_extra_args(false);
  app.add_option("--out", o->out, "the result's folder; default results/<utc>-<scenario>-<8 hex>");
  app.add_option("--operator", o->operator_name, "name that goes into the result");
  app.add_flag("--dry-run", o->dry_run, "print the plan as JSON and stop");
  app.add_flag("--json", o->json, "the tables as JSON on stdout");
  app.add_flag("--quiet", o->quiet, "no progress");
  return [o] { return run_command_body(*o); };
}

}  // namespace fsbl
