// The result file: every field out and in again, and everything that may be wrong with a file.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/core/scope_exit.h"
#include "harness/result/sample_for_test.h"
#include "harness/stats/histogram_json.h"

namespace fsbl {
namespace {

namespace fs = std::filesystem;

class TestDir {
 public:
  TestDir() : path_(fs::temp_directory_path() / ("fsbl_result_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~TestDir() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// One of everything, few of each; every optional field has a value.
Result small_result() {
  Result result = sample_result();
  result.cells = {result.cells.at(5)};
  std::erase_if(result.rounds,
                [&](const Round& round) { return round.block > 0 || round.cell != result.cells[0].id; });
  std::erase_if(result.summary, [&](const SummaryRow& row) { return row.cell != result.cells[0].id; });
  result.cells[0].arm = "b";
  Round& round = result.rounds.at(0);
  round.flags = {{"steal", 0.5, 0.02, true}, {"note", "x", nullptr, false}};
  round.status = "failed";
  round.attempts = {3, 1, {{"certificate expired", 2}}};
  round.accounting = {10, 4, 3, 2, 1};
  SummaryRow& row = result.summary.at(0);
  row.note = "block 3 is an outlier";
  row.ratio_to_plaintext = Ratio{1.5, Interval{1.2, 1.9, 0.95, "t on paired log-ratios (normality assumed)"}};
  return result;
}

std::string refusal(const Json& json) {
  const auto read = result_from_json(json, "r.json");
  if (read) return "";
  EXPECT_EQ(read.error().kind, ErrorKind::bad_input);
  EXPECT_EQ(read.error().what, "read r.json");
  return read.error().why;
}

TEST(ResultJson, RoundTripKeepsEveryField) {
  for (const Result& result : {sample_result(), small_result()}) {
    const Json json = to_json(result);
    const auto read = result_from_json(json, "r.json");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(to_json(*read), json) << Json::diff(json, to_json(*read)).dump(1);
  }
}

// to_json could forget a field both ways, unseen by the test above.
TEST(ResultJson, FieldsComeBackAsTheyWere) {
  const Result before = small_result();
  const auto after = result_from_json(to_json(before), "r.json");
  ASSERT_TRUE(after) << after.error().message();
  const Round &a = before.rounds[0], &b = after->rounds.at(0);
  EXPECT_EQ(b.status, "failed");
  EXPECT_EQ(b.flags.at(0).code, "steal");
  EXPECT_EQ(b.flags[0].value, 0.5);
  EXPECT_EQ(b.flags[0].limit, 0.02);
  EXPECT_TRUE(b.flags[0].invalidates);
  EXPECT_FALSE(b.flags.at(1).invalidates);
  EXPECT_EQ(b.attempts.refused_by_reason, a.attempts.refused_by_reason);
  EXPECT_EQ(b.attempts.accepted, 1u);
  EXPECT_EQ(b.accounting.planned, 10u);
  EXPECT_EQ(b.accounting.unsent, 1u);
  EXPECT_EQ(b.path, Verdict::proved);
  EXPECT_EQ(b.layers.size(), a.layers.size());
  EXPECT_EQ(b.missing.at(1).side, "server");
  EXPECT_EQ(b.details, a.details);
  const Series &latency_a = a.series.at(0), &latency_b = b.series.at(0);
  EXPECT_EQ(latency_b.clock, "CLOCK_MONOTONIC");
  EXPECT_EQ(latency_b.from, latency_a.from);
  EXPECT_EQ(latency_b.to, latency_a.to);
  EXPECT_EQ(latency_b.better, "lower");
  EXPECT_EQ(latency_b.distribution->min(), latency_a.distribution->min());
  EXPECT_EQ(latency_b.distribution->max(), latency_a.distribution->max());
  EXPECT_EQ(latency_b.distribution->mean(), latency_a.distribution->mean());
  EXPECT_EQ(b.series.at(1).value, a.series[1].value);
  const SummaryRow &row_a = before.summary[0], &row_b = after->summary.at(0);
  EXPECT_EQ(row_b.quantile, 0.5);
  EXPECT_EQ(row_b.value, row_a.value);
  EXPECT_EQ(row_b.interval->method, row_a.interval->method);
  EXPECT_EQ(row_b.cv, row_a.cv);
  EXPECT_EQ(row_b.samples, row_a.samples);
  EXPECT_EQ(row_b.note, "block 3 is an outlier");
  EXPECT_EQ(row_b.ratio_to_plaintext->interval->hi, 1.9);
  EXPECT_EQ(after->cells.at(0).arm, "b");
  EXPECT_EQ(after->cells[0].config.load.payload_bytes, 1u << 20);
  EXPECT_EQ(after->transports.at(4).composition, before.transports[4].composition);
  EXPECT_EQ(after->transports[4].fix, before.transports[4].fix);
  EXPECT_FALSE(after->transports[4].measured);
  EXPECT_EQ(after->scenarios.at(1).digest, before.scenarios[1].digest);
  EXPECT_EQ(after->logs.at(0).sha256, before.logs[0].sha256);
}

TEST(ResultJson, EmptyOptionalsAreLeftOut) {
  Result result;
  result.run = result.testbed = Json::object();
  Cell cell;
  cell.id = "c";
  cell.factors = Json::object();
  cell.config.transport.name = "plaintext";
  result.cells = {cell};
  Round round;
  round.cell = "c";
  round.series = {{.metric = "m", .basis = "b", .source = "s", .unit = "1", .value = 1}};
  result.rounds = {round};
  SummaryRow row;
  row.cell = "c";
  result.summary = {row};
  const Json json = to_json(result);
  for (const char* name : {"clock", "from", "to", "side", "better", "note", "distribution"})
    EXPECT_FALSE(json["rounds"][0]["series"][0].contains(name)) << name;
  for (const char* name : {"side", "quantile", "better", "interval", "cv", "ratio_to_plaintext"})
    EXPECT_FALSE(json["summary"][0].contains(name)) << name;
  EXPECT_TRUE(json["summary"][0]["value"].is_null());
  EXPECT_FALSE(json["cells"][0].contains("arm"));
  EXPECT_FALSE(json["rounds"][0].contains("details"));
  EXPECT_EQ(refusal(json), "");
}

TEST(ResultJson, NumbersThatJsonCannotSayBecomeNullWithANote) {
  Result result = small_result();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    result.rounds[0].series[1].value = bad;
    result.rounds[0].details["x"] = bad;
    result.summary[0].value = bad;
    result.summary[0].cv = bad;
    result.summary[0].interval = Interval{1, kInfinity, 0.95, "range"};
    result.summary[0].ratio_to_plaintext->value = bad;
    const std::string text = dump_json(to_json(result));
    for (const char* word : {":NaN", ":nan", ":inf", ":Inf", ":-inf"})
      EXPECT_EQ(text.find(word), std::string::npos) << word;
    const Json json = parse_json(text, "text").value();
    EXPECT_TRUE(json["rounds"][0]["series"][1]["value"].is_null());
    EXPECT_EQ(json["rounds"][0]["series"][1]["note"], "not a finite number");
    EXPECT_TRUE(json["summary"][0]["value"].is_null());
    EXPECT_EQ(json["summary"][0]["note"], "block 3 is an outlier; not a finite number");
    EXPECT_TRUE(json["summary"][0]["interval"]["hi"].is_null());
    const auto read = result_from_json(json, "r.json");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->summary[0].interval->hi, kInfinity);
    EXPECT_FALSE(read->summary[0].value);
  }
}

TEST(ResultReading, RefusesAnotherMajorByName) {
  Json json = to_json(small_result());
  json["schema"] = "2.0";
  EXPECT_EQ(refusal(json), "schema 2.0: this fsbl reads 1.x");
  json["schema"] = "10.0";
  EXPECT_EQ(refusal(json), "schema 10.0: this fsbl reads 1.x");
  json["schema"] = "1.7";
  EXPECT_EQ(refusal(json), "");
}

TEST(ResultReading, RefusesWhatIsNotAResult) {
  for (const char* text : {"null", "3", "\"schema\"", "[]", "{}", R"({"schema": 1})", R"({"schema": null})"})
    EXPECT_NE(refusal(Json::parse(text)).find("not a result"), std::string::npos) << text;
  EXPECT_EQ(refusal(Json{{"schema", "1.0"}}), "run: missing");
}

TEST(ResultReading, IgnoresUnknownFieldsEverywhere) {
  const Json json = to_json(small_result());
  Json extended = json;
  // Into every object with a fixed set of fields; free ones (names chosen by others) keep what they get.
  const std::set<std::string> free = {"resolved",          "factors", "details",
                                      "refused_by_reason", "sysctls", "environment"};
  const std::function<void(Json&)> extend = [&](Json& node) {
    if (!node.is_structured()) return;
    for (auto& [name, value] : node.items())
      if (!free.contains(name)) extend(value);
    if (node.is_object()) node["from the future"] = {{"a", 1}};
  };
  for (const char* list : {"scenarios", "transports", "cells", "rounds", "summary", "logs"})
    extend(extended[list]);
  extended["from the future"] = 1;
  const auto read = result_from_json(extended, "r.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read), json);
}

TEST(ResultReading, FillsConfigurationKeysThatAnOlderMinorLacked) {
  Json json = to_json(small_result());
  json["cells"][0]["config"]["load"].erase("verify");
  EXPECT_EQ(refusal(json), "");
  json["cells"][0]["config"].erase("transport");
  EXPECT_NE(refusal(json).find("cells[0].config: "), std::string::npos) << "no transport is no configuration";
}

TEST(ResultReading, NamesThePlaceOfDamage) {
  const Json good = to_json(small_result());
  const auto refusal_with = [&](const char* pointer, Json value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = std::move(value);
    return refusal(bad);
  };
  EXPECT_EQ(refusal_with("/rounds", 3), "rounds: not an array");
  EXPECT_EQ(refusal_with("/rounds/0", 3), "rounds[0]: not an object");
  EXPECT_EQ(refusal_with("/rounds/0/cell", "x"), "rounds[0].cell: no cell 'x' in cells");
  EXPECT_EQ(refusal_with("/rounds/0/block", -1), "rounds[0].block: not a whole number >= 0");
  EXPECT_EQ(refusal_with("/rounds/0/block", 1ull << 40), "rounds[0].block: too large");
  EXPECT_EQ(refusal_with("/rounds/0/validity/status", "fine"),
            "rounds[0].validity.status: unknown value 'fine'");
  EXPECT_EQ(refusal_with("/rounds/0/path/layers/0/verdict", true),
            "rounds[0].path.layers[0].verdict: not a text");
  EXPECT_EQ(refusal_with("/rounds/0/series/1/value", "7"), "rounds[0].series[1].value: not a number");
  EXPECT_NE(refusal_with("/rounds/0/series/0/distribution/data", "HISTF")
                .find("rounds[0].series[0].distribution: decode"),
            std::string::npos);
  EXPECT_EQ(
      refusal_with("/rounds/0/series/0/distribution", nullptr).find("rounds[0].series[0].distribution: "),
      0u);
  EXPECT_EQ(refusal_with("/rounds/0/attempts/refused_by_reason/why", 1.5),
            "rounds[0].attempts.refused_by_reason.why: not a whole number >= 0");
  EXPECT_EQ(refusal_with("/transports/0/status", "maybe"), "transports[0].status: unknown value 'maybe'");
  EXPECT_EQ(refusal_with("/summary/0/pooled", 0), "summary[0].pooled: neither true nor false");
  EXPECT_EQ(refusal_with("/cells/0/config/load/streams", "many").find("cells[0].config: "), 0u);
}

// Every value of the file, replaced by every kind of wrong one, and removed: refused or ignored, never a
// crash.
TEST(ResultReading, SurvivesEveryReplacement) {
  const Json good = to_json(small_result());
  std::vector<Json::json_pointer> places;
  const std::function<void(const Json&, const Json::json_pointer&)> collect =
      [&](const Json& node, const Json::json_pointer& at) {
        places.push_back(at);
        if (node.is_object())
          for (const auto& [name, value] : node.items()) collect(value, at / name);
        if (node.is_array() && !node.empty()) collect(node[0], at / 0);
      };
  collect(good, Json::json_pointer());
  EXPECT_GT(places.size(), 150u);
  const std::vector<Json> wrong = {
      nullptr, true, -1, 1.5, UINT64_MAX, 1e300, "", "text", Json::array(), Json::array({1}), Json::object()};
  for (const auto& place : places) {
    for (const Json& value : wrong) {
      Json bad = good;
      bad[place] = value;
      (void)refusal(bad);
    }
    if (place.empty()) continue;
    Json bad = good;
    if (bad[place.parent_pointer()].is_object()) bad[place.parent_pointer()].erase(place.back());
    (void)refusal(bad);
  }
}

TEST(ResultFiles, WrittenTwiceReplacesAndReadsBack) {
  const TestDir dir;
  Result result = sample_result();
  result.logs.push_back({"logs/deep/issuance.jsonl", "", 1, "{}\n"});
  ASSERT_TRUE(write_result(dir / "r", result));
  EXPECT_EQ(result.logs[1].sha256, sha256_hex("{}\n"));
  result.logs[1].content = "{\"b\":1}\n";
  result.run["complete"] = false;
  ASSERT_TRUE(write_result(dir / "r", result));
  EXPECT_EQ(sha256_file(dir / "r" / "logs/deep/issuance.jsonl").value(), sha256_hex("{\"b\":1}\n"));
  for (const fs::path& place : {dir / "r", dir / "r" / "result.json"}) {
    auto read = read_result(place);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(to_json(*read), to_json(result));
    EXPECT_EQ(result_file(place).value(), dir / "r" / "result.json");
    // A result that was read has no log contents; writing it leaves the logs alone.
    ASSERT_TRUE(write_result(dir / "r", *read));
    EXPECT_EQ(read_file(dir / "r" / "logs/deep/issuance.jsonl").value(), "{\"b\":1}\n");
  }
}

TEST(ResultFiles, LogsStayInsideTheFolder) {
  const TestDir dir;
  for (const char* path : {"../evil", "/tmp/evil", "logs/../../evil", "", ".", "logs/.."}) {
    Result result = small_result();
    result.logs = {{path, "", 0, "x"}};
    const auto written = write_result(dir / "r", result);
    ASSERT_FALSE(written) << path;
    EXPECT_FALSE(fs::exists(dir / "r" / "result.json")) << "logs come first";
  }
}

TEST(ResultFiles, MissingTruncatedAndForeignFilesAreBadInput) {
  const TestDir dir;
  const auto refused = [&](const fs::path& path) {
    const auto read = read_result(path);
    EXPECT_FALSE(read) << path;
    if (read) return std::string();
    EXPECT_EQ(read.error().kind, ErrorKind::bad_input);
    return read.error().message();
  };
  EXPECT_NE(refused(dir / "none").find("no such result"), std::string::npos);
  EXPECT_NE(refused(dir / "").find("result.json"), std::string::npos) << "a folder without a result";
  const std::string text = dump_json(to_json(small_result()));
  for (size_t length = 0; length < text.size(); length += 97) {
    ASSERT_TRUE(write_file_atomic(dir / "cut.json", std::string_view(text).substr(0, length)));
    refused(dir / "cut.json");
  }
  ASSERT_TRUE(write_file_atomic(dir / "cut.json", std::string("\x7f"
                                                              "ELF\0\xff",
                                                              6)));
  refused(dir / "cut.json");
}

TEST(ResultFiles, UnwritableFolderIsAnErrorWithTheReason) {
  const TestDir dir;
  ASSERT_TRUE(write_file_atomic(dir / "file", "x"));
  Result result = small_result();
  const auto written = write_result(dir / "file" / "r", result);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("ENOTDIR"), std::string::npos) << written.error().message();
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const TestDir dir;
  const std::string large(200'000, 'a');
  ASSERT_TRUE(write_file_atomic(dir / "large", large));
  EXPECT_EQ(sha256_file(dir / "large").value(), sha256_hex(large));
  EXPECT_FALSE(sha256_file(dir / "none"));
  EXPECT_FALSE(sha256_file(dir / ""));
}

// Validates against the published schema, and against the same schema with undocumented fields forbidden.
constexpr const char* kValidate = R"(
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit(77)
schema, result = (json.load(open(path)) for path in sys.argv[1:3])
def close(node):
    if isinstance(node, dict):
        if 'properties' in node and node.get('type') == 'object':
            node.setdefault('additionalProperties', False)
        for value in node.values():
            close(value)
if sys.argv[3] == 'closed':
    close(schema)
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(result))
for error in errors:
    print('/'.join(map(str, error.absolute_path)), error.message[:300])
sys.exit(1 if errors else 0)
)";

class Schema : public ::testing::Test {
 protected:
  // Exit status of the validator; its output says what is wrong.
  int validate(const Json& json, const std::string& mode) {
    EXPECT_TRUE(write_file_atomic(dir_ / "result.json", dump_json(json)));
    const auto output =
        run_command({"/usr/bin/python3", "-c", kValidate, kSchema, (dir_ / "result.json").string(), mode},
                    60'000'000'000);
    if (!output) return kNoModule;
    output_ = output->out + output->err;
    return output->status;
  }
  static constexpr int kNoModule = 77;
  static constexpr const char* kSchema = FSBL_SOURCE_DIR "/reports/schema/result.schema.json";
  TestDir dir_;
  std::string output_;
};

TEST_F(Schema, EveryResultValidatesAndEveryFieldIsDocumented) {
  for (const Result& result : {sample_result(), small_result()}) {
    const int status = validate(to_json(result), "closed");
    if (status == kNoModule) GTEST_SKIP() << "python3-jsonschema is not installed";
    EXPECT_EQ(status, 0) << output_;
  }
}

TEST_F(Schema, RefusesWhatTheReaderRefuses) {
  const Json good = to_json(small_result());
  const std::pair<const char*, Json> damages[] = {
      {"/schema", "2.0"},
      {"/rounds/0/validity/status", "fine"},
      {"/rounds/0/block", -1},
      {"/rounds/0/series/0/distribution/n", "3"},
      {"/rounds/0/series/1", Json{{"metric", "m"}, {"basis", ""}, {"source", ""}, {"unit", "1"}}},
      {"/transports/0/status", "maybe"},
      {"/summary/0/interval/method", "guess"},
      {"/logs/0/sha256", "abc"},
  };
  for (const auto& [pointer, value] : damages) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    const int status = validate(bad, "open");
    if (status == kNoModule) GTEST_SKIP() << "python3-jsonschema is not installed";
    EXPECT_EQ(status, 1) << pointer << " " << output_;
  }
}

}  // namespace
}  // namespace fsbl
