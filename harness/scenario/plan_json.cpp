// Plans and cell configurations as JSON. Sizes and times are integers; their keys carry the unit.
#include <fmt/format.h>

#include <set>

#include "harness/scenario/fields.h"
#include "harness/scenario/load.h"
#include "harness/scenario/settings.h"

namespace fsbl {
namespace {

// Where a dotted key stands in the JSON: /load/payload_bytes.
Json::json_pointer pointer_to(std::string_view dotted, std::string_view suffix) {
  std::string path = fmt::format("/{}{}", dotted, suffix);
  for (char& c : path)
    if (c == '.') c = '/';
  return Json::json_pointer(path);
}

struct ExactWriter {
  Json out;
  template <class T, class Kind>
  void operator()(std::string_view key, T& member, const Kind& kind) {
    out[pointer_to(key, kind.kSuffix)] = kind.exact(member);
  }
  template <class T, class Kind>
  void operator()(std::string_view key, std::optional<T>& member, const Kind& kind) {
    out[pointer_to(key, kind.kSuffix)] = member ? kind.exact(*member) : Json(nullptr);
  }
  void operator()(std::string_view key, std::map<std::string, std::string>& member, const field::TextMap&) {
    out[pointer_to(key, "")] = Json(member);
  }
};

// Every key must be there, and of its kind.
class ExactReader {
 public:
  explicit ExactReader(const Json& json) : json_(json) {}
  Expected<> result() && { return std::move(result_); }

  template <class T, class Kind>
  void operator()(std::string_view key, T& member, const Kind& kind) {
    const Json* json = find(key, kind.kSuffix);
    if (!json) return;
    if (auto value = kind.from_exact(*json)) {
      member = static_cast<T>(std::move(*value));
    } else {
      fail(key, kind.kSuffix, value.error());
    }
  }
  template <class T, class Kind>
  void operator()(std::string_view key, std::optional<T>& member, const Kind& kind) {
    const Json* json = find(key, kind.kSuffix);
    if (!json || json->is_null()) return;
    T value{};
    (*this)(key, value, kind);
    member = value;
  }
  void operator()(std::string_view key, std::map<std::string, std::string>& member,
                  const field::TextMap& kind) {
    const Json* json = find(key, "");
    if (!json) return;
    if (!json->is_object()) return fail(key, "", {.why = "not an object"});
    for (const auto& [name, item] : json->items()) {
      if (auto known = kind.check_name(name); !known) return fail(key, "", known.error());
      auto value = kind.value.from_exact(item);
      if (!value) return fail(key, "", value.error());
      member[name] = std::move(*value);
    }
  }

 private:
  const Json* find(std::string_view key, std::string_view suffix) {
    const auto pointer = pointer_to(key, suffix);
    if (json_.contains(pointer)) return &json_.at(pointer);
    fail(key, suffix, {.why = "missing"});
    return nullptr;
  }
  void fail(std::string_view key, std::string_view suffix, const Error& error) {
    if (result_) result_ = bad_input("cell configuration", fmt::format("{}{}: {}", key, suffix, error.why));
  }

  const Json& json_;
  Expected<> result_;
};

// The first key of `given` that `known` lacks, dotted; empty when there is none.
std::string extra_key(const Json& given, const Json& known) {
  if (!given.is_object()) return {};
  for (const auto& [name, value] : given.items()) {
    if (!known.contains(name)) return name;
    if (const std::string below = extra_key(value, known[name]); !below.empty()) return name + "." + below;
  }
  return {};
}

Expected<Composition> composition_from_json(const Json& json) {
  static constexpr const char* kWhat = "cell configuration";
  Composition composition;
  const auto found = json.find("transport");
  if (found == json.end() || !found->is_object()) return bad_input(kWhat, "transport: missing");
  const std::pair<const char*, std::string*> parts[] = {{"name", &composition.name},
                                                        {"tunnel", &composition.tunnel},
                                                        {"session", &composition.session},
                                                        {"engine", &composition.engine}};
  for (const auto& [name, part] : parts) {
    const auto text = found->find(name);
    if (text == found->end() || !text->is_string())
      return bad_input(kWhat, fmt::format("transport.{}: missing or not text", name));
    *part = text->get<std::string>();
    const bool may_be_empty = part == &composition.engine;
    if (!(may_be_empty && part->empty()) && !is_word(*part, part == &composition.name ? "-_.+" : "-_", 128))
      return bad_input(kWhat, fmt::format("transport.{}: not a name", name));
  }
  return composition;
}

}  // namespace

Json to_json(const CellConfig& config) {
  const Composition& transport = config.transport;
  ExactWriter writer;
  writer.out["transport"] = {{"name", transport.name},
                             {"tunnel", transport.tunnel},
                             {"session", transport.session},
                             {"engine", transport.engine}};
  CellConfig copy = config;
  visit_fields(copy, writer);
  return std::move(writer.out);
}

Expected<CellConfig> cell_config_from_json(const Json& json) {
  if (!json.is_object()) return bad_input("cell configuration", "not an object");
  CellConfig config;
  FSBL_ASSIGN(config.transport, composition_from_json(json));
  ExactReader reader(json);
  visit_fields(config, reader);
  FSBL_TRY(std::move(reader).result());
  if (const std::string extra = extra_key(json, to_json(config)); !extra.empty())
    return bad_input("cell configuration", "unknown key " + quote(extra));
  if (const auto found = contradiction(config))
    return bad_input("cell configuration", found->why, found->fix);
  return config;
}

Json to_json(const RunPlan& plan) {
  Json json = {{"seed", plan.seed}, {"repetitions", plan.repetitions}, {"profile", plan.profile}};
  json["scenarios"] = Json::array();
  for (const ResolvedScenario& scenario : plan.scenarios)
    json["scenarios"].push_back({{"id", scenario.id},
                                 {"title", scenario.title},
                                 {"path", scenario.path},
                                 {"digest", scenario.digest},
                                 {"resolved", scenario.resolved}});
  json["cells"] = Json::array();
  for (const Cell& cell : plan.cells)
    json["cells"].push_back({{"id", cell.id},
                             {"scenario", cell.scenario},
                             {"arm", cell.arm},
                             {"factors", cell.factors},
                             {"config", to_json(cell.config)}});
  json["rounds"] = Json::array();
  for (const PlannedRound& round : plan.rounds)
    json["rounds"].push_back(
        {{"order", round.order}, {"block", round.block}, {"cell", plan.cells[round.cell].id}});
  return json;
}

}  // namespace fsbl
