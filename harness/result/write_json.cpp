// Result → JSON. Empty optionals are left out; a number that JSON can't say becomes null, and a note says so.
#include <cmath>

#include "harness/result/model.h"
#include "harness/scenario/load.h"
#include "harness/stats/histogram_json.h"

namespace fsbl {
namespace {

constexpr const char* kNotFinite = "not a finite number";

void put_text(Json& json, const char* name, const std::string& text) {
  if (!text.empty()) json[name] = text;
}

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class T, class F>
Json array_of(const std::vector<T>& items, F&& convert) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(convert(item));
  return out;
}

Json scenario_json(const ResolvedScenario& scenario) {
  return {{"id", scenario.id},
          {"title", scenario.title},
          {"path", scenario.path},
          {"digest", scenario.digest},
          {"resolved", scenario.resolved}};
}

Json transport_json(const TransportStatus& status) {
  Json json{{"name", status.composition.name},
            {"tunnel", status.composition.tunnel},
            {"session", status.composition.session}};
  put_text(json, "engine", status.composition.engine);
  json["label"] = status.label;
  json["family"] = status.family;
  json["status"] = status.measured ? "measured" : "unavailable";
  put_text(json, "reason", status.reason);
  put_text(json, "fix", status.fix);
  return json;
}

Json cell_json(const Cell& cell) {
  Json json{{"id", cell.id}, {"scenario", cell.scenario}};
  put_text(json, "arm", cell.arm);
  json["factors"] = cell.factors;
  json["config"] = to_json(cell.config);
  return json;
}

Json flag_json(const Flag& flag) {
  Json json{{"code", flag.code}};
  if (!flag.value.is_null()) json["value"] = flag.value;
  if (!flag.limit.is_null()) json["limit"] = flag.limit;
  json["invalidates"] = flag.invalidates;
  return json;
}

Json series_json(const Series& series) {
  Json json{{"metric", series.metric}, {"basis", series.basis}, {"source", series.source}};
  put_text(json, "clock", series.clock);
  put_text(json, "from", series.from);
  put_text(json, "to", series.to);
  put_text(json, "side", series.side);
  json["unit"] = series.unit;
  put_text(json, "better", series.better);
  if (series.distribution) {
    json["distribution"] = to_json(*series.distribution);
  } else {
    json["value"] = series.value ? finite(*series.value) : Json(nullptr);
    if (json["value"].is_null()) json["note"] = series.value ? kNotFinite : "not measured";
  }
  return json;
}

Json missing_json(const Missing& missing) {
  Json json{{"name", missing.name}};
  put_text(json, "side", missing.side);
  json["reason"] = missing.reason;
  return json;
}

Json round_json(const Round& round) {
  Json json{{"cell", round.cell},
            {"block", round.block},
            {"order", round.order},
            {"started_at", round.started_at},
            {"ended_at", round.ended_at}};
  json["validity"] = Json{{"status", round.status}, {"flags", array_of(round.flags, flag_json)}};
  json["path"] =
      Json{{"verdict", to_text(round.path)},
           {"layers", array_of(round.layers, [](const LayerProof& layer) { return to_json(layer); })}};
  json["series"] = array_of(round.series, series_json);
  json["accounting"] = Json{{"planned", round.accounting.planned},
                            {"done", round.accounting.done},
                            {"failed", round.accounting.failed},
                            {"outstanding_at_end", round.accounting.outstanding_at_end},
                            {"unsent", round.accounting.unsent}};
  Json refused = Json::object();
  for (const auto& [reason, times] : round.attempts.refused_by_reason) refused[reason] = times;
  json["attempts"] = Json{{"planned", round.attempts.planned},
                          {"accepted", round.attempts.accepted},
                          {"refused_by_reason", std::move(refused)}};
  json["missing"] = array_of(round.missing, missing_json);
  if (!round.details.is_null()) json["details"] = round.details;
  return json;
}

Json interval_json(const Interval& interval) {
  return {{"lo", finite(interval.lo)},
          {"hi", finite(interval.hi)},
          {"level", interval.level},
          {"method", interval.method}};
}

Json summary_json(const SummaryRow& row) {
  Json json{{"cell", row.cell}, {"metric", row.metric}, {"basis", row.basis}};
  put_text(json, "side", row.side);
  if (row.quantile) json["quantile"] = *row.quantile;
  json["unit"] = row.unit;
  put_text(json, "better", row.better);
  json["value"] = row.value ? finite(*row.value) : Json(nullptr);
  if (row.interval) json["interval"] = interval_json(*row.interval);
  json["n"] = row.n;
  json["samples"] = row.samples;
  json["pooled"] = row.pooled;
  if (row.cv && std::isfinite(*row.cv)) json["cv"] = *row.cv;
  if (row.ratio_to_plaintext && std::isfinite(row.ratio_to_plaintext->value)) {
    Json ratio{{"value", row.ratio_to_plaintext->value}};
    if (row.ratio_to_plaintext->interval)
      ratio["interval"] = interval_json(*row.ratio_to_plaintext->interval);
    json["ratio_to_plaintext"] = std::move(ratio);
  }
  const bool lost = row.value && !std::isfinite(*row.value);
  put_text(json, "note", lost ? row.note + (row.note.empty() ? "" : "; ") + kNotFinite : row.note);
  return json;
}

Json log_json(const LogFile& log) {
  return {{"path", log.path}, {"sha256", log.sha256}, {"entries", log.entries}, {"bytes", log.bytes}};
}

}  // namespace

Json to_json(const Result& result) {
  return {{"schema", kResultSchema},
          {"run", result.run},
          {"scenarios", array_of(result.scenarios, scenario_json)},
          {"testbed", result.testbed},
          {"transports", array_of(result.transports, transport_json)},
          {"cells", array_of(result.cells, cell_json)},
          {"rounds", array_of(result.rounds, round_json)},
          {"summary", array_of(result.summary, summary_json)},
          {"logs", array_of(result.logs, log_json)}};
}

}  // namespace fsbl
