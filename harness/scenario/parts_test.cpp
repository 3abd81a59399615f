// Goal: the small parts of the scenario layer: words in messages, presets.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/core/random.h"
#include "harness/scenario/presets.h"
#include "harness/scenario/text.h"

namespace fsbl {
namespace {

// Straight from the definition of optimal string alignment, without tables.
size_t slow_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const auto last = [](std::string_view text, size_t back) { return text[text.size() - back]; };
  const auto cut = [](std::string_view text, size_t n) { return text.substr(0, text.size() - n); };
  size_t least = std::min(slow_distance(cut(a, 1), b) + 1, slow_distance(a, cut(b, 1)) + 1);
  least = std::min(least, slow_distance(cut(a, 1), cut(b, 1)) + (last(a, 1) == last(b, 1) ? 0 : 1));
  if (a.size() > 1 && b.size() > 1 && last(a, 1) == last(b, 2) && last(a, 2) == last(b, 1))
    least = std::min(least, slow_distance(cut(a, 2), cut(b, 2)) + 1);
  return least;
}

TEST(Text, EditDistanceAgreesWithItsDefinition) {
  SplitMix64 random(1);
  const auto word = [&] {
    std::string text(random.below(7), ' ');
    for (char& c : text) c = static_cast<char>('a' + random.below(3));
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string a = word(), b = word();
    ASSERT_EQ(edit_distance(a, b), slow_distance(a, b)) << a << " " << b;
  }
}

TEST(Text, SuggestsTheNearestOrListsAll) {
  const std::vector<std::string_view> known = {"mtls", "mtls-dpdk", "plaintext"};
  EXPECT_EQ(suggestion("mtsl", known), "nearest: 'mtls'");
  EXPECT_EQ(suggestion("plain", known), "known: mtls, mtls-dpdk, plaintext");
  EXPECT_EQ(suggestion("", known), "known: mtls, mtls-dpdk, plaintext");
  EXPECT_EQ(suggestion(std::string(100'000, 'x'), known), "known: mtls, mtls-dpdk, plaintext");
}

TEST(Text, QuotesSafely) {
  EXPECT_EQ(quote("a\x1b[31m\xff"), "'a?[31m?'");
  EXPECT_EQ(quote("µs"), "'µs'");
  const std::string cut = quote(std::string(59, 'x') + "µ");
  EXPECT_EQ(find_bad_text(cut), std::string::npos);
  EXPECT_LT(cut.size(), 70u);
}

TEST(Text, KnowsUtf8) {
  EXPECT_EQ(find_bad_text("aµ€😀\t\r\n"), std::string::npos);
  for (const char* bad :
       {"ok\xff", "ok\xc0\x80", "ok\xed\xa0\x80", "ok\xf4\x90\x80\x80", "ok\xe2\x82", "ok\x01"})
    EXPECT_EQ(find_bad_text(bad), 2u) << bad;
  EXPECT_EQ(find_bad_text(std::string_view("ok\0", 3)), 2u);
}

TEST(Presets, AreDistinctAndComposeBack) {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(std::string(preset.name)).second);
    const auto composition = composition_of(preset.name);
    ASSERT_TRUE(composition);
    EXPECT_EQ(composition->name, preset.name);
    EXPECT_EQ(compose(composition->tunnel, composition->session, composition->engine), *composition);
    EXPECT_FALSE(preset.summary.empty());
  }
}

TEST(Presets, OtherCompositionsAreNamedAfterTheirParts) {
  EXPECT_EQ(compose("none", "tls", "").name, "mtls");
  EXPECT_EQ(compose("none", "plain", "").name, "plaintext");
  EXPECT_EQ(compose("wireguard-go", "tls", "").name, "wireguard-go+tls+openssl");
  EXPECT_EQ(compose("ztt", "plain", "").name, "ztt+plain");
  for (const char* name : {"wireguard-go+tls+openssl", "ztt+plain"})
    EXPECT_EQ(composition_of(name)->name, name);
  EXPECT_EQ(composition_of("none+tls")->name, "mtls");
}

TEST(Presets, UnknownNamesAreBadInput) {
  EXPECT_EQ(composition_of("wiregard").error().message(),
            "transport 'wiregard': unknown; nearest: 'wireguard'");
  for (const char* bad : {"", "+", "a+", "+a", "a+b+c+d", "a b+c", "MTLS+"}) {
    const auto composition = composition_of(bad);
    ASSERT_FALSE(composition) << bad;
    EXPECT_EQ(composition.error().kind, ErrorKind::bad_input);
  }
}

}  // namespace
}  // namespace fsbl
