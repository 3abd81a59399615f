#include "harness/stats/histogram_json.h"

#include <fmt/format.h>

#include "harness/stats/interval.h"

namespace fsbl {
namespace {

constexpr const char* kEncoding = "HdrHistogram V2";
constexpr double kTailFrom = 0.95;  // below, a quantile needs no minimum of samples
struct NamedQuantile {
  const char* name;
  double q;
};
constexpr NamedQuantile kQuantiles[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

const Json* member(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found == json.end() ? nullptr : &*found;
}

template <class T>
Expected<T> integer(const Json& json, const char* name) {
  const Json* value = member(json, name);
  const bool fits =
      value && value->is_number_integer() &&
      (value->is_number_unsigned() ? value->get<uint64_t>() <= INT64_MAX : value->get<int64_t>() >= 0);
  if (!fits) return bad_input(name, value ? "not a whole number >= 0" : "missing");
  return value->get<T>();
}

Expected<std::string> text(const Json& json, const char* name) {
  const Json* value = member(json, name);
  if (!value || !value->is_string()) return bad_input(name, value ? "not a text" : "missing");
  return value->get<std::string>();
}

}  // namespace

Json to_json(const Histogram& histogram) {
  Json json{{"encoding", kEncoding},
            {"data", histogram.encode_base64()},
            {"n", histogram.count()},
            {"clipped", histogram.clipped()}};
  Json quantiles = Json::object();
  for (const auto& [name, q] : kQuantiles)
    if (histogram.count() > 0 && (q < kTailFrom || histogram.count() >= samples_needed(q)))
      quantiles[name] = *histogram.quantile(q);
  if (histogram.count() > 0) {
    json["min"] = histogram.min();
    json["max"] = quantiles["max"] = histogram.max();
    json["mean"] = histogram.mean();
  }
  json["quantiles"] = std::move(quantiles);
  return json;
}

Expected<Histogram> histogram_from_json(const Json& json) {
  if (!json.is_object()) return bad_input("distribution", "not an object");
  FSBL_ASSIGN(const std::string encoding, text(json, "encoding"));
  if (encoding != kEncoding) return bad_input("encoding", fmt::format("'{}' is not {}", encoding, kEncoding));
  FSBL_ASSIGN(const std::string data, text(json, "data"));
  FSBL_ASSIGN(Histogram histogram, Histogram::decode_base64(data));
  FSBL_ASSIGN(const uint64_t n, integer<uint64_t>(json, "n"));
  if (n != histogram.count())
    return bad_input("n", fmt::format("says {}, data holds {}", n, histogram.count()));
  FSBL_ASSIGN(const uint64_t clipped, integer<uint64_t>(json, "clipped"));
  int64_t min = 0, max = 0;
  if (n > 0) {
    FSBL_ASSIGN(min, integer<int64_t>(json, "min"));
    FSBL_ASSIGN(max, integer<int64_t>(json, "max"));
  }
  FSBL_TRY(histogram.set_exact(min, max, clipped));
  return histogram;
}

}  // namespace fsbl
