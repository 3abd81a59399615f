// SPIFFE ids: the standard's syntax, rule by rule.
#include <gtest/gtest.h>

#include "harness/identity/svid.h"

namespace fsbl {
namespace {

TEST(SpiffeIds, GoodOnesKeepTheirText) {
  const std::string longest =
      "spiffe://" + std::string(255, 'a') + "/" + std::string(2048 - 9 - 255 - 1, 'b');
  for (const std::string text : {"spiffe://staging.example.com/payments/mysql", "spiffe://trustdomain/...",
                                 "spiffe://td", "spiffe://td/A_b-c.9", "spiffe://1.2.3.4/x",
                                 "spiffe://a_b-c/x", "spiffe://td/...a/..b", longest.c_str()}) {
    const auto id = parse_spiffe_id(text);
    ASSERT_TRUE(id) << text << ": " << id.error().message();
    EXPECT_EQ(id->text(), text);
  }
  const auto id = parse_spiffe_id("spiffe://staging.example.com/payments/mysql").value();
  EXPECT_EQ(id.trust_domain, "staging.example.com");
  EXPECT_EQ(id.path, "/payments/mysql");
  EXPECT_EQ(parse_spiffe_id("spiffe://td")->path, "");
}

TEST(SpiffeIds, BadOnesNameTheRule) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "does not start with spiffe://"},
      {"Spiffe://x/y", "does not start with spiffe://"},
      {"https://x/y", "does not start with spiffe://"},
      {"spiffe:/x/y", "does not start with spiffe://"},
      {" spiffe://x/y", "does not start with spiffe://"},
      {"spiffe://", "trust domain is empty"},
      {"spiffe:///", "trust domain is empty"},
      {"spiffe:///path", "trust domain is empty"},
      {"spiffe://td/", "path ends with a slash"},
      {"spiffe://td//path", "path has an empty segment"},
      {"spiffe://td/path/", "path ends with a slash"},
      {"spiffe://td/./path", "path has a dot segment"},
      {"spiffe://td/path/..", "path has a dot segment"},
      {"spiffe://td/%62ad", "path is percent-encoded"},
      {"spiffe://td/pa th", "path has a character outside [A-Za-z0-9._-]"},
      {"spiffe://td/a:b", "path has a character outside [A-Za-z0-9._-]"},
      {"spiffe://td/\xc3\xa4", "path has a character outside [A-Za-z0-9._-]"},
      {std::string("spiffe://td/a\0b", 15), "path has a character outside [A-Za-z0-9._-]"},
      {"spiffe://td:8080/path", "trust domain has a port"},
      {"spiffe://user@td/path", "trust domain has user information"},
      {"spiffe://user:pass@td/path", "trust domain has user information"},
      {"spiffe://t%64/path", "trust domain is percent-encoded"},
      {"spiffe://TD/path", "trust domain has upper-case letters"},
      {"spiffe://t d/path", "trust domain has a character outside [a-z0-9._-]"},
      {"spiffe://td/path?q=1", "has a query"},
      {"spiffe://td?q", "has a query"},
      {"spiffe://td/path#f", "has a fragment"},
      {"spiffe://" + std::string(256, 'a') + "/x", "trust domain is longer than 255 bytes"},
      {"spiffe://td/" + std::string(2048 - 11, 'a'), "longer than 2048 bytes"},
  };
  for (const auto& [text, rule] : cases) {
    const auto id = parse_spiffe_id(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().why, rule) << text;
    EXPECT_EQ(id.error().kind, ErrorKind::bad_input);
  }
}

}  // namespace
}  // namespace fsbl
