// JSON → Result, strictly: what is wrong is refused with its place in the file.
#include <fmt/format.h>

#include <limits>
#include <set>

#include "harness/result/json_reader.h"
#include "harness/result/model.h"
#include "harness/scenario/load.h"
#include "harness/stats/histogram_json.h"

namespace fsbl {
namespace {

template <class F>
auto read_all(const JsonReader& array, F&& read) {
  std::vector<decltype(read(array))> out;
  array.each([&](const JsonReader& element) { out.push_back(read(element)); });
  return out;
}

ResolvedScenario read_scenario(const JsonReader& in) {
  return {in["id"].text(), in["title"].text(), in["path"].text(), in["resolved"].object(),
          in["digest"].text()};
}

TransportStatus read_transport(const JsonReader& in) {
  TransportStatus status;
  status.composition = {in["name"].text(), in["tunnel"].text(), in["session"].text(),
                        in.text_or_empty("engine")};
  status.label = in["label"].text();
  status.family = in["family"].text();
  status.measured = in["status"].one_of<bool>({{"measured", true}, {"unavailable", false}});
  status.reason = in.text_or_empty("reason");
  status.fix = in.text_or_empty("fix");
  return status;
}

// What `given` says of the keys that `known` has: a file of another minor version may know more or fewer.
Json overlaid(Json known, const Json& given) {
  if (!known.is_object() || known.empty() || !given.is_object()) return given;
  for (const auto& [name, value] : known.items())
    if (const auto found = given.find(name); found != given.end()) value = overlaid(value, *found);
  return known;
}

Cell read_cell(const JsonReader& in) {
  Cell cell;
  cell.id = in["id"].text();
  cell.scenario = in["scenario"].text();
  cell.arm = in.text_or_empty("arm");
  cell.factors = in["factors"].object();
  const JsonReader config = in["config"];
  if (auto read = cell_config_from_json(overlaid(to_json(CellConfig{}), config.object())))
    cell.config = std::move(*read);
  else
    config.fail(read.error().message());
  return cell;
}

Flag read_flag(const JsonReader& in) {
  Flag flag;
  flag.code = in["code"].text();
  if (const auto value = in.find("value")) flag.value = value->any();
  if (const auto limit = in.find("limit")) flag.limit = limit->any();
  flag.invalidates = in["invalidates"].boolean();
  return flag;
}

Series read_series(const JsonReader& in) {
  Series series;
  series.metric = in["metric"].text();
  series.basis = in["basis"].text();
  series.source = in["source"].text();
  series.clock = in.text_or_empty("clock");
  series.from = in.text_or_empty("from");
  series.to = in.text_or_empty("to");
  series.side = in.text_or_empty("side");
  series.unit = in["unit"].text();
  series.better = in.text_or_empty("better");
  if (const auto distribution = in.find("distribution")) {
    if (auto histogram = histogram_from_json(distribution->any()))
      series.distribution = std::move(*histogram);
    else
      distribution->fail(histogram.error().message());
  } else if (const JsonReader value = in["value"]; !value.is_null()) {
    series.value = value.number();
  }
  return series;
}

Missing read_missing(const JsonReader& in) {
  return {in["name"].text(), in.text_or_empty("side"), in["reason"].text()};
}

Accounting read_accounting(const JsonReader& in) {
  return {in["planned"].count(), in["done"].count(), in["failed"].count(), in["outstanding_at_end"].count(),
          in["unsent"].count()};
}

Attempts read_attempts(const JsonReader& in) {
  Attempts attempts{in["planned"].count(), in["accepted"].count(), {}};
  in["refused_by_reason"].each_member([&](const std::string& reason, const JsonReader& times) {
    attempts.refused_by_reason[reason] = times.count();
  });
  return attempts;
}

Round read_round(const JsonReader& in) {
  Round round;
  round.cell = in["cell"].text();
  round.block = in["block"].integer();
  round.order = in["order"].integer();
  round.started_at = in["started_at"].text();
  round.ended_at = in["ended_at"].text();
  round.status = in["validity"]["status"].one_of<std::string>(
      {{"valid", "valid"}, {"invalid", "invalid"}, {"failed", "failed"}});
  round.flags = read_all(in["validity"]["flags"], read_flag);
  round.path = in["path"]["verdict"].one_of<Verdict>({{"proved", Verdict::proved},
                                                      {"unproven", Verdict::unproven},
                                                      {"contradicted", Verdict::contradicted}});
  round.layers = read_all(in["path"]["layers"], read_layer_proof);
  round.series = read_all(in["series"], read_series);
  round.accounting = read_accounting(in["accounting"]);
  round.attempts = read_attempts(in["attempts"]);
  round.missing = read_all(in["missing"], read_missing);
  if (const auto details = in.find("details")) round.details = details->any();
  return round;
}

Interval read_interval(const JsonReader& in) {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  const JsonReader lo = in["lo"], hi = in["hi"];
  return {lo.is_null() ? -kUnbounded : lo.number(), hi.is_null() ? kUnbounded : hi.number(),
          in["level"].number(), in["method"].text()};
}

SummaryRow read_row(const JsonReader& in) {
  SummaryRow row;
  row.cell = in["cell"].text();
  row.metric = in["metric"].text();
  row.basis = in["basis"].text();
  row.side = in.text_or_empty("side");
  row.unit = in["unit"].text();
  row.better = in.text_or_empty("better");
  if (const auto quantile = in.find("quantile")) row.quantile = quantile->number();
  if (const JsonReader value = in["value"]; !value.is_null()) row.value = value.number();
  if (const auto interval = in.find("interval")) row.interval = read_interval(*interval);
  row.n = in["n"].count();
  row.samples = in["samples"].count();
  row.pooled = in["pooled"].boolean();
  if (const auto cv = in.find("cv")) row.cv = cv->number();
  if (const auto ratio = in.find("ratio_to_plaintext")) {
    row.ratio_to_plaintext = Ratio{(*ratio)["value"].number(), std::nullopt};
    if (const auto interval = ratio->find("interval"))
      row.ratio_to_plaintext->interval = read_interval(*interval);
  }
  row.note = in.text_or_empty("note");
  return row;
}

LogFile read_log(const JsonReader& in) {
  const auto bytes = in.find("bytes");
  return {in["path"].text(), in["sha256"].text(), in["entries"].count(), {}, bytes ? bytes->count() : 0};
}

Expected<> check_schema(const Json& json, const std::string& what) {
  const auto schema = json.is_object() ? json.find("schema") : json.end();
  if (schema == json.end() || !schema->is_string())
    return bad_input(what, "not a result of fsbl (it has no schema)", "give a result.json or its folder");
  const std::string found = schema->get<std::string>();
  const std::string_view ours = kResultSchema;
  const std::string_view major = ours.substr(0, ours.find('.') + 1);
  if (!found.starts_with(major))
    return bad_input(what, fmt::format("schema {}: this fsbl reads {}x", found, major),
                     "use the fsbl that wrote it");
  return {};
}

// Rounds and rows must belong to a cell of the file; whatever follows looks cells up by id.
void check_cells(const JsonReader& in, const Result& result) {
  std::set<std::string_view> known;
  for (const Cell& cell : result.cells) known.insert(cell.id);
  for (const char* list : {"rounds", "summary"})
    in[list].each([&](const JsonReader& entry) {
      const JsonReader cell = entry["cell"];
      if (const std::string id = cell.text(); !known.contains(id)) cell.fail("no cell '" + id + "' in cells");
    });
}

}  // namespace

Expected<Result> result_from_json(const Json& json, const std::string& name) {
  const std::string what = "read " + name;
  FSBL_TRY(check_schema(json, what));
  JsonReader::Failure failure;
  const JsonReader in(json, failure);
  Result result;
  result.run = in["run"].object();
  result.scenarios = read_all(in["scenarios"], read_scenario);
  result.testbed = in["testbed"].object();
  result.transports = read_all(in["transports"], read_transport);
  result.cells = read_all(in["cells"], read_cell);
  result.rounds = read_all(in["rounds"], read_round);
  result.summary = read_all(in["summary"], read_row);
  result.logs = read_all(in["logs"], read_log);
  check_cells(in, result);
  if (failure.why) return bad_input(what, *failure.why);
  return result;
}

}  // namespace fsbl
