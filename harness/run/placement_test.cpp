#include "harness/run/placement.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

TEST(Placement, DefaultStaysWhereItCanBeHad) {
  PlacementConfig p;
  ASSERT_TRUE(settle_placement(p, {0, 1, 2}));
  EXPECT_EQ(p.client, std::vector<int>{0});
  EXPECT_EQ(p.server, std::vector<int>{1});
}

TEST(Placement, DefaultGivesWayToTheCpusAllowed) {
  PlacementConfig cpuset, one;
  ASSERT_TRUE(settle_placement(cpuset, {4, 5, 6}));
  EXPECT_EQ(cpuset.client, std::vector<int>{4});
  EXPECT_EQ(cpuset.server, std::vector<int>{5});
  ASSERT_TRUE(settle_placement(one, {3}));
  EXPECT_EQ(one.client, one.server);
}

TEST(Placement, ChosenCpuThatIsNotThereIsRefused) {
  for (auto member : {&PlacementConfig::client, &PlacementConfig::server, &PlacementConfig::tunnel}) {
    PlacementConfig p;
    p.*member = {0, 99};
    const auto settled = settle_placement(p, {0, 1});
    ASSERT_FALSE(settled);
    EXPECT_EQ(settled.error().kind, ErrorKind::bad_input);
    EXPECT_NE(settled.error().message().find("CPU 99"), std::string::npos);
  }
}

TEST(Placement, ThisProcessHasACpu) { EXPECT_FALSE(allowed_cpus().empty()); }

}  // namespace
}  // namespace fsbl
