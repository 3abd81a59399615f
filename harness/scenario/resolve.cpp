// file → profile → --set.
#include <fmt/format.h>

#include "harness/scenario/expand.h"
#include "harness/scenario/settings.h"
#include "harness/scenario/text.h"

namespace fsbl {
namespace {

constexpr int kDefaultRepetitions = 5;  // the FSBL method

// The chosen profile's layer; empty for "full" where the file has none of that name. Checks them all.
Expected<Layer> read_profiles(const Node& document, const std::string& file, const std::string& wanted) {
  const Node* profiles = find(document, "profiles");
  Layer chosen;
  bool found = wanted == "full";
  std::vector<std::string_view> names = {"full"};
  if (profiles) {
    if (profiles->kind != Node::Kind::map)
      return bad_input(profiles->where,
                       fmt::format("profiles: {} where a map is expected", kind_text(profiles->kind)));
    for (const Member& member : profiles->members) {
      if (!is_word(member.key, "-_", 32))
        return bad_input(member.where, fmt::format("profiles: {} is not a name", quote(member.key)));
      FSBL_ASSIGN(Layer layer, layer_of(member.value, RunKeys::change));
      names.push_back(member.key);
      if (member.key != wanted) continue;
      chosen = std::move(layer);
      found = true;
    }
  }
  if (!found) return bad_input(file, "no profile " + quote(wanted), suggestion(wanted, names));
  return chosen;
}

}  // namespace

Expected<Scenario> resolve(const std::string& yaml, const std::string& name, const PlanRequest& request) {
  FSBL_ASSIGN(const Node document, parse_document(yaml, name));
  if (document.kind == Node::Kind::null) return bad_input(name, "empty", "scenarios/README.md has the keys");
  Scenario scenario;
  scenario.path = name;
  FSBL_ASSIGN(scenario.layer, layer_of(document, RunKeys::all));
  for (const char* required : {"id", "transports"})
    if (!find(scenario.layer.values, required))
      return bad_input(document.where, fmt::format("key '{}' is missing", required));
  FSBL_ASSIGN(Layer profile,
              read_profiles(document, name, request.profile.empty() ? "full" : request.profile));
  overlay(scenario.layer, std::move(profile));
  FSBL_ASSIGN(Layer settings, layer_of(request.settings, "--set ", RunKeys::change));
  overlay(scenario.layer, std::move(settings));

  scenario.repetitions = kDefaultRepetitions;
  scenario.config = default_config();
  for (const auto& [key, value] : scenario.layer.values) {
    if (key == "id") {
      scenario.id = value.text;
    } else if (key == "title") {
      scenario.title = value.text;
    } else if (key == "description") {
      scenario.description = value.text;
    } else if (key == "seed") {
      FSBL_ASSIGN(scenario.seed, read_run_number(key, value));
    } else if (key == "repetitions") {
      FSBL_ASSIGN(const uint64_t repetitions, read_run_number(key, value));
      scenario.repetitions = static_cast<int>(repetitions);
    } else if (key == "transports") {
      FSBL_ASSIGN(scenario.transports, read_transports(value));
    } else {
      FSBL_TRY(set(scenario.config, key, value));
    }
  }
  if (scenario.title.empty()) scenario.title = scenario.id;
  return scenario;
}

Json resolved_document(const Scenario& scenario) {
  Json document = {{"id", scenario.id}, {"title", scenario.title}};
  if (!scenario.description.empty()) document["description"] = scenario.description;
  document["seed"] = scenario.seed;
  document["repetitions"] = scenario.repetitions;
  for (const Composition& transport : scenario.transports) {
    Json parts = {{"name", transport.name}, {"tunnel", transport.tunnel}, {"session", transport.session}};
    if (!transport.engine.empty()) parts["engine"] = transport.engine;
    document["transports"].push_back(std::move(parts));
  }
  Json matrix = Json::object();
  std::vector<std::string> swept;
  for (const auto& [key, list] : scenario.layer.sweeps) {
    swept.push_back(key);
    for (const Node& item : list.items) {
      CellConfig config;
      if (set(config, key, item)) matrix[key].push_back(file_value(config, key));
    }
  }
  document.update(file_form(scenario.config, swept));
  if (!matrix.empty()) document["matrix"] = std::move(matrix);
  return document;
}

}  // namespace fsbl
