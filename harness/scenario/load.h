// From scenario files to a run plan. scenarios/README.md documents the file form; document.cpp is the only
// file that includes yaml-cpp. Every error names file:line:column (or the option, "--set load.payload=abc"),
// what is wrong, and the nearest valid key where a key is unknown.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "harness/scenario/model.h"

namespace fsbl {

struct Arm {
  std::string name;
  std::vector<std::string> settings;  // "key=value"
};

struct PlanRequest {
  std::vector<std::string> scenarios;  // ids ("fsbl/latency") or paths
  std::string profile;                 // empty: "full", i.e. the file's own values
  std::vector<std::string> settings;   // --set key=value, dotted keys
  std::vector<Arm> arms;               // --arm NAME:key=value; same NAME several times adds settings
  std::vector<std::filesystem::path>
      search;  // folders that hold scenarios/<id>.yaml; default {data_dir()/scenarios}
};

// Same request, same files: the same plan, byte for byte.
Expected<RunPlan> make_plan(const PlanRequest& request);
// Parses "NAME:key=value"; "NAME:" is an arm that changes nothing.
Expected<Arm> parse_arm(std::string_view text);

struct ScenarioSummary {
  std::string id, title, path;
};
std::vector<ScenarioSummary> list_scenarios(const std::vector<std::filesystem::path>& search);

// Parses and checks one scenario text; for tests and the fuzz target. Never throws, never crashes.
Expected<RunPlan> plan_text(const std::string& yaml, const std::string& file_name,
                            const PlanRequest& request);

// Plan as JSON (for --dry-run and tests).
Json to_json(const RunPlan& plan);
Json to_json(const CellConfig& config);
Expected<CellConfig> cell_config_from_json(const Json& json);  // what the agent receives

}  // namespace fsbl
