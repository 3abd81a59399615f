// Parsers of /proc texts: what they read, and that malformed texts are errors and never numbers.
#include "harness/probe/proc_parse.h"

#include <gtest/gtest.h>

namespace fsbl {
namespace {

constexpr int64_t kTick = 10'000'000;
const std::string kStat =
    "77 (a) b (c) S 1 77 77 0 -1 4194560 1234 9 56 8 700 300 1 2 20 0 3 0 424242 3133440 357 "
    "18446744073709551615\n";

TEST(ProcessStat, NameMayHoldParenthesesAndSpaces) {
  const auto stat = parse_process_stat(kStat, kTick);
  ASSERT_TRUE(stat) << stat.error().message();
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->minor_faults, 1234u);
  EXPECT_EQ(stat->major_faults, 56u);
  EXPECT_EQ(stat->user_ns, 7'000'000'000);
  EXPECT_EQ(stat->system_ns, 3'000'000'000);
  EXPECT_EQ(stat->start_ticks, 424242u);
}

TEST(ProcessStat, MalformedIsAnError) {
  for (const char* bad :
       {"", "1 no name", "1 (x)", "1 (x) S 1 2 3", "1 (x) S 1 1 1 0 -1 0 x 0 0 0 0 0 0 0 0 0 0 0 5",
        "1 (x) S 1 1 1 0 -1 0 0 0 0 0 -5 0 0 0 0 0 0 0 5",
        "1 (x) S 1 1 1 0 -1 0 0 0 0 0 9223372036854775807 0 0 0 0 0 0 0 5"})
    EXPECT_FALSE(parse_process_stat(bad, kTick)) << bad;
  // Every prefix that ends before the last field needed is refused, never misread.
  const size_t end = kStat.find("424242");
  for (size_t size = 0; size < end; ++size)
    EXPECT_FALSE(parse_process_stat(kStat.substr(0, size), kTick)) << size;
}

TEST(StatusField, ReadsCountsAndKilobytes) {
  const char* status =
      "Name:\tVmRSS\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nvoluntary_ctxt_switches:\t5\nX:\t1 MB\nY:\n";
  EXPECT_EQ(status_field(status, "VmRSS"), 1024u * 1024);
  EXPECT_EQ(status_field(status, "VmHWM"), 2048u * 1024);
  EXPECT_EQ(status_field(status, "voluntary_ctxt_switches"), 5u);
  for (const char* absent : {"nonvoluntary_ctxt_switches", "ctxt_switches", "Vm", "Name", "X", "Y", ""})
    EXPECT_EQ(status_field(status, absent), std::nullopt) << absent;
  EXPECT_EQ(status_field("", "VmRSS"), std::nullopt);
}

TEST(CpuLine, FieldsOfTheRightCpu) {
  const char* stat =
      "cpu  100 0 0 0 0 0 0 0 0 0\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 11 0 0 0 0 0 0 0\ncpu2 1 2 3\nintr 9\n";
  const auto cpu = parse_cpu_line(stat, 1, kTick);
  ASSERT_TRUE(cpu) << cpu.error().message();
  EXPECT_EQ(cpu->user_ns, 3 * kTick);  // user and nice
  EXPECT_EQ(cpu->system_ns, 3 * kTick);
  EXPECT_EQ(cpu->idle_ns, 4 * kTick);
  EXPECT_EQ(cpu->iowait_ns, 5 * kTick);
  EXPECT_EQ(cpu->irq_ns, 6 * kTick);
  EXPECT_EQ(cpu->softirq_ns, 7 * kTick);
  EXPECT_EQ(cpu->steal_ns, 8 * kTick);
  EXPECT_EQ(parse_cpu_line(stat, 11, kTick)->user_ns, 11 * kTick);
  EXPECT_FALSE(parse_cpu_line(stat, 0, kTick));
  EXPECT_FALSE(parse_cpu_line(stat, 2, kTick));
  EXPECT_FALSE(parse_cpu_line("cpu3 1 2 3 -4 5 6 7 8\n", 3, kTick));
  EXPECT_FALSE(parse_cpu_line("", 0, kTick));
}

}  // namespace
}  // namespace fsbl
