// The runner: the only file that knows the whole order of a run.
#pragma once
#include <filesystem>
#include <functional>

#include "harness/result/model.h"
#include "harness/transport/registry.h"

namespace fsbl {

struct Progress {
  size_t done = 0, total = 0;      // rounds
  std::string cell;                // the round that starts now, or just ended
  Nanos left = 0;                  // estimate
  const Round* ended = nullptr;    // set after each round
};

struct RunRequest {
  RunPlan plan;
  Host host;                               // of this machine, probed by the caller
  std::filesystem::path out;               // the result's folder; made at the first finished round
  std::vector<std::string> require;        // transports that must be usable (exit 4 otherwise)
  std::string operator_name;               // may be empty
  std::function<void(const Progress&)> progress;
};

struct RunOutcome {
  Result result;
  size_t failed = 0, invalid = 0;          // rounds
  bool cancelled = false;
};

// Runs the plan's rounds, writing the result after each, so that what was finished is kept whatever happens.
// Broken rounds are marked and the run goes on. Errors: nothing usable, a required transport is not, no space, ...
Expected<RunOutcome> run(RunRequest request);

}  // namespace fsbl
