#include "harness/scenario/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/file.h"
#include "harness/scenario/expand.h"
#include "harness/scenario/text.h"

namespace fsbl {
namespace {
namespace fs = std::filesystem;

std::vector<fs::path> search_folders(const std::vector<fs::path>& given) {
  return given.empty() ? std::vector<fs::path>{data_dir() / "scenarios"} : given;
}

// A file as messages and results call it: below the working folder if it is there.
std::string shown_path(const fs::path& path) {
  std::error_code ignored;
  const fs::path relative = fs::proximate(path, ignored);
  const bool is_below = !ignored && !relative.empty() && *relative.begin() != "..";
  return (is_below ? relative : path.lexically_normal()).string();
}

struct ScenarioFile {
  fs::path path;
  bool by_id = false;
};

Expected<ScenarioFile> find_scenario(const std::string& name, const std::vector<fs::path>& search) {
  std::error_code ignored;
  const bool looks_like_path = name.find('/') != std::string::npos && name.ends_with(".yaml");
  if (looks_like_path || fs::is_regular_file(name, ignored)) return ScenarioFile{name, false};
  if (is_word(name, "-_/", 100)) {
    for (const fs::path& folder : search)
      if (const fs::path path = folder / (name + ".yaml"); fs::is_regular_file(path, ignored))
        return ScenarioFile{path, true};
  }
  const std::vector<ScenarioSummary> scenarios = list_scenarios(search);
  std::vector<std::string_view> known;
  for (const ScenarioSummary& scenario : scenarios) known.push_back(scenario.id);
  return bad_input("scenario " + quote(name), "not found", known.empty() ? "no scenario lies below " + (search.empty() ? std::string("(nowhere)") : search[0].string()) : suggestion(name, known));
}

// Same NAME several times adds settings.
Expected<std::vector<Arm>> merged_arms(const std::vector<Arm>& arms) {
  std::vector<Arm> merged;
  for (const Arm& arm : arms) {
    if (!is_word(arm.name, "-_.", 32))
      return bad_input("--arm " + quote(arm.name), "not a name",
                       "use at most 32 letters, digits, '-', '_', '.'");
    const auto same =
        std::find_if(merged.begin(), merged.end(), [&](const Arm& a) { return a.name == arm.name; });
    if (same == merged.end()) {
      merged.push_back(arm);
    } else {
      same->settings.insert(same->settings.end(), arm.settings.begin(), arm.settings.end());
    }
  }
  return merged;
}

Expected<RunPlan> plan_of(const std::vector<Scenario>& scenarios, const PlanRequest& request) {
  FSBL_ASSIGN(const std::vector<Arm> arms, merged_arms(request.arms));
  RunPlan plan;
  plan.seed = scenarios.front().seed;
  plan.profile = request.profile.empty() ? "full" : request.profile;
  std::vector<int> repetitions_of_cell;
  for (const Scenario& scenario : scenarios) {
    FSBL_ASSIGN(std::vector<Cell> cells, expand(scenario, arms));
    if (plan.cells.size() + cells.size() > kMaxCells)
      return bad_input(scenario.path, fmt::format("more than {} cells in the run", kMaxCells),
                       "run fewer scenarios");
    repetitions_of_cell.insert(repetitions_of_cell.end(), cells.size(), scenario.repetitions);
    std::move(cells.begin(), cells.end(), std::back_inserter(plan.cells));
    plan.repetitions = std::max(plan.repetitions, scenario.repetitions);
    plan.scenarios.push_back({scenario.id, scenario.title, scenario.path, resolved_document(scenario), ""});
  }
  plan.rounds = schedule(repetitions_of_cell, plan.seed);
  return plan;
}

}  // namespace

Expected<RunPlan> make_plan(const PlanRequest& request) {
  if (request.scenarios.empty())
    return bad_input("plan", "no scenario given", "fsbl list scenarios names them");
  const std::vector<fs::path> search = search_folders(request.search);
  std::vector<Scenario> scenarios;
  std::set<std::string> ids;
  for (const std::string& name : request.scenarios) {
    FSBL_ASSIGN(const ScenarioFile file, find_scenario(name, search));
    FSBL_ASSIGN(const std::string yaml, read_file(file.path, kMaxDocumentBytes));
    FSBL_ASSIGN(Scenario scenario, resolve(yaml, shown_path(file.path), request));
    if (file.by_id && scenario.id != name)
      return bad_input(scenario.path, fmt::format("its id is '{}', not '{}'", scenario.id, name),
                       "rename one of them");
    if (!ids.insert(scenario.id).second)
      return bad_input("scenario " + quote(name), fmt::format("'{}' is in the run already", scenario.id));
    scenarios.push_back(std::move(scenario));
  }
  return plan_of(scenarios, request);
}

Expected<RunPlan> plan_text(const std::string& yaml, const std::string& file_name,
                            const PlanRequest& request) {
  FSBL_ASSIGN(Scenario scenario, resolve(yaml, file_name, request));
  return plan_of({std::move(scenario)}, request);
}

Expected<Arm> parse_arm(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find('=') < colon)
    return bad_input("--arm " + quote(text), "no name", "write NAME:key=value");
  Arm arm{.name = std::string(text.substr(0, colon))};
  if (const std::string_view setting = text.substr(colon + 1); !setting.empty())
    arm.settings.emplace_back(setting);
  FSBL_TRY(merged_arms({arm}));
  return arm;
}

std::vector<ScenarioSummary> list_scenarios(const std::vector<fs::path>& search) {
  std::vector<ScenarioSummary> found;
  for (const fs::path& folder : search_folders(search)) {
    std::error_code ended;
    for (fs::recursive_directory_iterator at(folder, ended), end; !ended && at != end; at.increment(ended)) {
      const fs::path& path = at->path();
      std::error_code ignored;
      if (at->is_directory(ignored) && (path.filename() == "schema" || path.filename() == "testbeds"))
        at.disable_recursion_pending();
      if (path.extension() != ".yaml" || !at->is_regular_file(ignored)) continue;
      const auto yaml = read_file(path, kMaxDocumentBytes);
      if (!yaml) continue;
      const auto document = parse_document(*yaml, path.string());
      const Node* id = document ? find(*document, "id") : nullptr;
      if (!id || id->kind != Node::Kind::scalar) continue;
      const Node* title = find(*document, "title");
      found.push_back({id->text, title ? title->text : id->text, shown_path(path)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return std::tie(a.id, a.path) < std::tie(b.id, b.path); });
  return found;
}

}  // namespace fsbl
