// Goal: what is no scenario is refused with its place and reason, whatever it is. testdata/ holds one
// document a case; the first line of a bad one is the message that it must give.
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/core/file.h"
#include "harness/scenario/document.h"
#include "harness/scenario/load.h"

namespace fsbl {
namespace {
namespace fs = std::filesystem;

struct Case {
  std::string name, yaml;
};

std::vector<Case> cases_in(const std::string& folder) {
  std::vector<Case> cases;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FSBL_SOURCE_DIR "/harness/scenario/testdata") / folder))
    cases.push_back({entry.path().filename().string(), read_file(entry.path()).value()});
  EXPECT_FALSE(cases.empty());
  return cases;
}

TEST(Documents, GoodOnesMakeAPlan) {
  for (const Case& good : cases_in("good")) {
    const auto plan = plan_text(good.yaml, good.name, {});
    EXPECT_TRUE(plan) << plan.error().message();
  }
}

TEST(Documents, BadOnesSayWhereAndWhy) {
  for (const char* folder : {"bad", "bad_beyond_schema"}) {
    for (const Case& bad : cases_in(folder)) {
      const auto plan = plan_text(bad.yaml, bad.name, {});
      ASSERT_FALSE(plan) << bad.name;
      EXPECT_EQ(plan.error().kind, ErrorKind::bad_input) << bad.name;
      const std::string expected = bad.yaml.substr(2, bad.yaml.find('\n') - 2);
      EXPECT_EQ(plan.error().message(), bad.name + ":" + expected);
    }
  }
}

std::string message_of(const std::string& yaml) {
  const auto plan = plan_text(yaml, "x.yaml", {});
  return plan ? "" : plan.error().message();
}

TEST(Documents, WhatNoFileCanHold) {
  EXPECT_EQ(message_of(""), "x.yaml: empty; scenarios/README.md has the keys");
  EXPECT_EQ(message_of("# only a comment\n"), "x.yaml: empty; scenarios/README.md has the keys");
  EXPECT_EQ(message_of("id: a\ntitle: \"\xff\"\n"), "x.yaml:2:9: byte 0xff is not UTF-8 text");
  EXPECT_EQ(message_of(std::string("id: a\0", 6)), "x.yaml:1:6: byte 0x00 is not UTF-8 text");
  EXPECT_EQ(message_of(std::string((1 << 20) + 1, ' ')), "x.yaml: larger than 1048576 bytes");
}

TEST(Documents, BombsAreBounded) {
  std::string many = "id: a\ntransports: [";
  for (int i = 0; i < 20'000; ++i) many += "a,";
  EXPECT_NE(message_of(many + "]").find("more than 10000 values in the file"), std::string::npos);

  std::string aliases = "a: &a [x,x]\nb: &b [*a,*a]\n";
  EXPECT_NE(message_of(aliases).find("anchors and aliases are not accepted"), std::string::npos);

  for (const char* opening : {"[", "{", "- ", "? ", "{a: "}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += opening;
    EXPECT_NE(message_of(deep), "") << opening;
  }
}

TEST(Documents, EveryPrefixOfAGoodOneIsHandled) {
  for (const Case& good : cases_in("good")) {
    for (size_t length = 0; length < good.yaml.size(); ++length) {
      const auto plan = plan_text(good.yaml.substr(0, length), "x.yaml", {});
      EXPECT_TRUE(plan || plan.error().kind == ErrorKind::bad_input) << length;
    }
  }
}

TEST(Documents, RememberWhereValuesStood) {
  const auto document = parse_document("a: 1\nb:\n  - c\n  - {d: \"2\"}\n", "f");
  ASSERT_TRUE(document);
  EXPECT_EQ(find(*document, "a")->where, "f:1:4");
  const Node* list = find(*document, "b");
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].where, "f:3:5");
  EXPECT_EQ(list->items[1].members[0].where, "f:4:6");
  EXPECT_TRUE(list->items[1].members[0].value.is_quoted);
  EXPECT_FALSE(list->items[0].is_quoted);
}

}  // namespace
}  // namespace fsbl
