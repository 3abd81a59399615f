// Goal: scenarios are found by id and by path, several make one run, and every shipped one plans in every
// profile.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "harness/core/file.h"
#include "harness/scenario/load.h"
#include "harness/scenario/settings.h"

namespace fsbl {
namespace {
namespace fs = std::filesystem;

const fs::path kShipped = FSBL_SOURCE_DIR "/scenarios";

class Load : public testing::Test {
 protected:
  Load() {
    write("a.yaml", "id: a\nseed: 3\nrepetitions: 1\ntransports: [mtls, plaintext]\n");
    write("deep/b.yaml", "id: deep/b\ntitle: B\nseed: 4\nrepetitions: 3\ntransports: [mtls]\n");
    write("renamed.yaml", "id: other\ntransports: [mtls]\n");
    write("broken.yaml", "id: [\n");
    write("notes.yaml", "x: 1\n");
    write("schema/s.yaml", "id: s\ntransports: [mtls]\n");
    write("testbeds/t.yaml", "id: t\ntransports: [mtls]\n");
  }
  ~Load() override { fs::remove_all(folder_); }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((folder_ / path).parent_path());
    EXPECT_TRUE(write_file_atomic(folder_ / path, text));
  }
  std::string error_of(const std::string& scenario) {
    const auto plan = make_plan({.scenarios = {scenario}, .search = {folder_}});
    return plan ? "" : plan.error().message();
  }

  fs::path folder_ = fs::temp_directory_path() / ("fsbl_scenario_" + std::to_string(getpid()));
};

TEST_F(Load, ListsWhatHasAnId) {
  std::vector<std::string> ids;
  for (const ScenarioSummary& scenario : list_scenarios({folder_}))
    ids.push_back(scenario.id + " " + scenario.title);
  EXPECT_EQ(ids, (std::vector<std::string>{"a a", "deep/b B", "other other"}));
  EXPECT_TRUE(list_scenarios({folder_ / "missing"}).empty());
}

TEST_F(Load, FindsByIdAndByPath) {
  const auto by_id = make_plan({.scenarios = {"deep/b"}, .search = {folder_ / "missing", folder_}});
  ASSERT_TRUE(by_id) << by_id.error().message();
  EXPECT_EQ(by_id->scenarios[0].path, (folder_ / "deep/b.yaml").string());
  const auto by_path = make_plan({.scenarios = {(folder_ / "renamed.yaml").string()}, .search = {folder_}});
  ASSERT_TRUE(by_path) << by_path.error().message();
  EXPECT_EQ(by_path->scenarios[0].id, "other");
}

TEST_F(Load, SaysWhatItCannotFind) {
  EXPECT_EQ(error_of("deep/c"), "scenario 'deep/c': not found; nearest: 'deep/b'");
  EXPECT_EQ(error_of("../a"), "scenario '../a': not found; known: a, deep/b, other");
  EXPECT_NE(error_of("./missing.yaml").find("ENOENT"), std::string::npos);
  EXPECT_EQ(error_of("renamed"),
            (folder_ / "renamed.yaml").string() + ": its id is 'other', not 'renamed'; rename one of them");
  EXPECT_FALSE(make_plan({}));
  EXPECT_FALSE(make_plan({.scenarios = {"a", "a"}, .search = {folder_}}));
}

TEST_F(Load, SeveralScenariosShareTheirBlocks) {
  const auto plan = make_plan({.scenarios = {"a", "deep/b"}, .search = {folder_}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->seed, 3u);
  EXPECT_EQ(plan->repetitions, 3);
  ASSERT_EQ(plan->rounds.size(), 3u + 1 + 1);
  std::set<std::string> first_block;
  for (const PlannedRound& round : plan->rounds) {
    const Cell& cell = plan->cells[round.cell];
    if (round.block == 0) first_block.insert(cell.id);
    EXPECT_TRUE(round.block == 0 || cell.scenario == "deep/b");
  }
  EXPECT_EQ(first_block, (std::set<std::string>{"a|mtls", "a|plaintext", "deep/b|mtls"}));
  EXPECT_EQ(make_plan({.scenarios = {"a", "deep/b"}, .settings = {"seed=5"}, .search = {folder_}})->seed, 5u);
}

TEST(Shipped, EveryScenarioPlansInEveryProfile) {
  const auto scenarios = list_scenarios({kShipped});
  std::set<std::string> ids;
  for (const ScenarioSummary& scenario : scenarios) {
    ids.insert(scenario.id);
    for (const char* profile : {"full", "quick", "proof"}) {
      const auto plan = make_plan({.scenarios = {scenario.id}, .profile = profile, .search = {kShipped}});
      EXPECT_TRUE(plan) << plan.error().message();
    }
  }
  for (const char* id : {"fsbl/latency", "fsbl/throughput", "smoke/smoke", "smoke/null",
                         "smoke/tunnelled-mtls", "smoke/directions"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(Shipped, BaselinesFollowTheMethod) {
  const auto latency = make_plan({.scenarios = {"fsbl/latency"}, .search = {kShipped}});
  ASSERT_TRUE(latency);
  EXPECT_EQ(latency->repetitions, 5);
  EXPECT_EQ(latency->cells.size(), 8u * 2);
  EXPECT_EQ(latency->cells[0].id, "fsbl/latency|plaintext|load.payload=64KiB");
  const auto quick =
      make_plan({.scenarios = {"fsbl/latency", "fsbl/throughput"}, .profile = "quick", .search = {kShipped}});
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->rounds.size(), (8u * 2 + 8u * 3) * 3);
  EXPECT_EQ(quick->cells[0].config.phases.max_duration, 6'000'000'000);
  const auto proof = make_plan({.scenarios = {"fsbl/latency"}, .profile = "proof", .search = {kShipped}});
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->cells[1].id, "fsbl/latency|plaintext|load.payload=16KiB");
}

TEST(Shipped, SchemaNamesEveryKey) {
  const auto text = read_file(kShipped / "schema/scenario.schema.json");
  ASSERT_TRUE(text);
  const Json schema = parse_json(*text, "schema").value();
  std::set<std::string> sweepable, known;
  for (const auto& [key, value] : schema["$defs"]["matrix"]["properties"].items()) sweepable.insert(key);
  for (const std::string_view key : dotted_keys())
    if (key_kind(key) == KeyKind::scalar) known.insert(std::string(key));
  EXPECT_EQ(sweepable, known);
  for (const std::string_view section : keys_in(""))
    EXPECT_TRUE(schema["properties"].contains(std::string(section))) << section;
  for (const auto& [key, value] : schema["properties"].items())
    EXPECT_FALSE(plan_text(key + ": ~\n", "x", {}).error().message().starts_with("x:1:1: unknown key"))
        << key;
}

}  // namespace
}  // namespace fsbl
