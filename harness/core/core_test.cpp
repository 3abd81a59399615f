// Core: errors, units, atomic files, child processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/core/random.h"
#include "harness/core/units.h"

namespace fsbl {
namespace {

TEST(Units, BytesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536u);
  EXPECT_EQ(parse_bytes("1 MiB").value(), 1048576u);
  EXPECT_EQ(parse_bytes("100").value(), 100u);
  EXPECT_EQ(parse_bytes("1.5kB").value(), 1500u);
  for (const char* bad : {"", "KiB", "-1B", "1 kib", "1.5B", "nan", "inf", "99999999999GiB"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("0.5s").value(), 500'000'000);
  EXPECT_EQ(parse_duration("2min").value(), 120'000'000'000);
  EXPECT_EQ(parse_duration("0").value(), 0);
  for (const char* bad : {"2", "-1s", "1 sec", "s", "1e99s"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, Format) {
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(100), "100 B");
  EXPECT_EQ(format_duration(1'500'000'000), "1.5 s");
  EXPECT_EQ(format_duration(3'000), "3 µs");
}

TEST(Errors, MessageNamesWhatWhyAndFix) {
  const Error error{ErrorKind::fault, "attach xdp to eth1", "EOPNOTSUPP", "use mode: generic"};
  EXPECT_EQ(error.message(), "attach xdp to eth1: EOPNOTSUPP; use mode: generic");
  EXPECT_EQ(exit_code(ErrorKind::bad_input), 2);
  EXPECT_EQ(exit_code(ErrorKind::unavailable), 4);
  EXPECT_EQ(exit_code(ErrorKind::fault), 5);
  EXPECT_EQ(exit_code(ErrorKind::cancelled), 130);
}

TEST(Files, AtomicWriteReplacesAndLeavesNoTemporary) {
  const auto dir = std::filesystem::temp_directory_path() / ("fsbl_core_" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  ASSERT_TRUE(write_file_atomic(dir / "a", "one"));
  ASSERT_TRUE(write_file_atomic(dir / "a", "two"));
  EXPECT_EQ(read_file(dir / "a").value(), "two");
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir)) ++entries;
  EXPECT_EQ(entries, 1u);
  EXPECT_FALSE(write_file_atomic(dir / "missing" / "a", "x"));
  EXPECT_FALSE(read_file(dir));
  EXPECT_FALSE(read_file(dir / "a", 2));
  std::filesystem::remove_all(dir);
}

TEST(Files, FullDiskIsAnErrorWithTheReason) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto error = write_file_atomic("/dev/full/x", "data");
  EXPECT_FALSE(error);
}

TEST(Processes, ExecFailureIsReportedByTheParent) {
  SpawnOptions options;
  options.argv = {"/nonexistent/program"};
  auto child = spawn(options);
  ASSERT_FALSE(child);
  EXPECT_NE(child.error().message().find("exec: ENOENT"), std::string::npos) << child.error().message();
}

TEST(Processes, OutputStatusAndTimeout) {
  auto output = run_command({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 5'000'000'000);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->status, 3);
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_FALSE(run_command({"/bin/sleep", "30"}, 50'000'000));
}

TEST(Processes, OnlyNamedDescriptorsReachTheChild) {
  int pair[2];
  ASSERT_EQ(pipe(pair), 0);  // not CLOEXEC on purpose
  auto output = run_command({"/bin/sh", "-c", "ls /proc/self/fd | wc -l"}, 5'000'000'000);
  ASSERT_TRUE(output);
  EXPECT_LE(std::stoi(output->out), 4) << output->out;  // 0 1 2 and ls's own
  close(pair[0]);
  close(pair[1]);
}

TEST(Processes, ChildIsKilledWithItsOwner) {
  pid_t pid;
  {
    SpawnOptions options;
    options.argv = {"/bin/sleep", "30"};
    auto child = spawn(options);
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Random, SequenceIsFixed) {
  SplitMix64 random(1);
  EXPECT_EQ(random.next(), 0x910a2dec89025cc1ull);
  std::vector<int> items = {0, 1, 2, 3, 4};
  SplitMix64 a(7), b(7);
  auto copy = items;
  seeded_shuffle(items, a);
  seeded_shuffle(copy, b);
  EXPECT_EQ(items, copy);
}

}  // namespace
}  // namespace fsbl
