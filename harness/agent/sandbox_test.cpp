// The worker's confinement, seen on a program that really was started so: as root, and in a user namespace.
#include "harness/agent/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <filesystem>

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/testbed/test_child.h"

namespace fsbl {
namespace {

namespace fs = std::filesystem;

SpawnOptions confined(std::vector<std::string> argv) {
  SpawnOptions options;
  options.argv = std::move(argv);
  options.in_child = drop_worker_privileges;
  return options;
}

// A folder that only its owner may enter, with a copy of a program inside.
class PrivateFolder {
 public:
  PrivateFolder() : path_(fs::temp_directory_path() / ("fsbl_sandbox_" + std::to_string(getpid()))) {
    fs::create_directory(path_);
    fs::copy_file("/bin/sleep", program());
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~PrivateFolder() { fs::remove_all(path_); }
  fs::path program() const { return path_ / "worker"; }

 private:
  fs::path path_;
};

bool root_of_the_host() {
  return geteuid() == 0 && read_small("/proc/self/uid_map").find("4294967295") != std::string::npos;
}

TEST(Sandbox, RootsWorkerIsNobodyWithNothing) {
  if (!root_of_the_host()) GTEST_SKIP() << "needs root";
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    const gid_t groups[] = {0, 4};
    FSBL_REQUIRE(setgroups(2, groups) == 0);
    FSBL_ASSIGN(const Child worker, spawn(confined({"/bin/sleep", "30"})));
    FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
    FSBL_REQUIRE(report.confined());
    FSBL_REQUIRE(report.dropped_user && report.dropped_groups && report.uid == 65534);
    return {};
  }));
}

TEST(Sandbox, UnderSudoTheWorkerIsTheInvokingUser) {
  if (!root_of_the_host()) GTEST_SKIP() << "needs root";
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    const std::pair<const char*, uid_t> cases[] = {{"1234", 1234},       {"0", 65534},  {"", 65534},
                                                   {"12x", 65534},       {"-1", 65534}, {"4294967295", 65534},
                                                   {"4294967296", 65534}};
    for (const auto& [sudo_uid, expected] : cases) {
      setenv("SUDO_UID", sudo_uid, 1);
      setenv("SUDO_GID", sudo_uid, 1);
      FSBL_ASSIGN(const Child worker, spawn(confined({"/bin/sleep", "30"})));
      FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
      FSBL_REQUIRE(report.confined() && report.dropped_user && report.dropped_groups);
      FSBL_REQUIRE(report.uid == expected);
    }
    return {};
  }));
}

// User id 0 of a namespace gets its bounding set back at exec; so this one looks after exec.
TEST(Sandbox, RootlessWorkerKeepsItsUserAndNothingElse) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    FSBL_TRY(enter_user_namespace());
    FSBL_ASSIGN(const Child worker, spawn(confined({"/bin/sleep", "30"})));
    FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
    FSBL_REQUIRE(report.confined());
    FSBL_REQUIRE(report.uid == 0 && !report.dropped_user);
    return {};
  }));
}

// Ambient capabilities (a service manager's way) would outlive a change of user and exec, bounding set or
// not.
TEST(Sandbox, AmbientCapabilitiesOfAnOrdinaryAgentDoNotReachTheWorker) {
  if (!root_of_the_host()) GTEST_SKIP() << "needs root";
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_REQUIRE(prctl(PR_SET_KEEPCAPS, 1) == 0);
    FSBL_TRY(become_ordinary_user());
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const uint32_t held = CAP_TO_MASK(CAP_NET_ADMIN) | CAP_TO_MASK(CAP_SETPCAP);
    const __user_cap_data_struct caps[2] = {{held, held, held}, {0, 0, 0}};
    FSBL_REQUIRE(syscall(SYS_capset, &header, caps) == 0);
    FSBL_REQUIRE(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0) == 0);
    SpawnOptions options = confined({"/bin/sleep", "30"});
    options.in_child = nullptr;
    FSBL_ASSIGN(const Child unconfined, spawn(options));
    FSBL_ASSIGN(const SandboxReport before, read_sandbox(unconfined.pid()));
    FSBL_REQUIRE(!before.caps_dropped);
    FSBL_ASSIGN(const Child worker, spawn(confined({"/bin/sleep", "30"})));
    FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
    FSBL_REQUIRE(report.confined() && report.uid == 65534);
    return {};
  }));
}

TEST(Sandbox, UnconfinedProcessIsReportedAsSuch) {
  if (!root_of_the_host()) GTEST_SKIP() << "needs root";
  const auto report = read_sandbox(getpid());
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->confined());
  EXPECT_FALSE(report->dropped_user);
}

// What a worker without the right to drop its bounding set may not be started with.
TEST(Sandbox, AgentWithoutTheRightStartsNoWorker) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    const auto worker = spawn(confined({"/bin/sleep", "30"}));
    FSBL_REQUIRE(!worker && worker.error().message().find("prepare: EPERM") != std::string::npos);
    return {};
  }));
}

TEST(Sandbox, ProgramInAPrivateFolderRunsByDescriptor) {
  const PrivateFolder folder;
  if (root_of_the_host()) {
    const auto by_path = spawn(confined({folder.program(), "30"}));
    ASSERT_FALSE(by_path);
    EXPECT_NE(by_path.error().message().find("exec: EACCES"), std::string::npos) << by_path.error().message();
  }
  FSBL_EXPECT_CHILD(run_in_child([&]() -> Expected<> {
    if (geteuid() != 0) FSBL_TRY(enter_user_namespace());
    FSBL_ASSIGN(const UniqueFd program, open_worker(folder.program()));
    SpawnOptions options = confined({worker_exec_path(program.get()), "30"});
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.fds = {{null.get(), 3}, {null.get(), 9}};
    FSBL_ASSIGN(const Child worker, spawn(options));
    const fs::path proc = "/proc/" + std::to_string(worker.pid());
    FSBL_REQUIRE(fs::read_symlink(proc / "exe") == folder.program());
    FSBL_REQUIRE(!fs::exists(fs::symlink_status(proc / "fd" / std::to_string(program.get()))));
    FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
    FSBL_REQUIRE(report.confined());
    return {};
  }));
}

TEST(Sandbox, OpenWorkerRefusesWhatCannotRun) {
  const PrivateFolder folder;
  EXPECT_FALSE(open_worker(folder.program().parent_path()));
  EXPECT_FALSE(open_worker(folder.program().string() + "-missing"));
  fs::permissions(folder.program(), fs::perms::owner_all);
  const auto owner_only = open_worker(folder.program());
  ASSERT_FALSE(owner_only);
  EXPECT_NE(owner_only.error().fix.find("chmod a+rx"), std::string::npos);
}

// No test by itself: what the next one runs as its worker (this very program, with a filter).
TEST(Sandbox, DISABLED_UndumpableWorker) {
  const int failed = prctl(PR_SET_DUMPABLE, 0) != 0;
  if (::write(3, &failed, sizeof failed) != sizeof failed) return;
  for (;;) pause();
}

// Both ways a worker runs, after it made itself undumpable: the agent still sees what it must.
TEST(Sandbox, AgentStillSeesAnUndumpableWorker) {
  for (const bool rootless : {false, true}) {
    if (!rootless && !root_of_the_host()) continue;
    FSBL_EXPECT_CHILD(run_in_child([&]() -> Expected<> {
      FSBL_ASSIGN(const UniqueFd program, open_worker("/proc/self/exe"));
      if (rootless) {
        FSBL_TRY(become_ordinary_user());
        FSBL_TRY(enter_user_namespace());
      }
      int ready[2];
      FSBL_REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
      const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
      SpawnOptions options = confined({worker_exec_path(program.get()), "--gtest_also_run_disabled_tests",
                                       "--gtest_filter=Sandbox.DISABLED_UndumpableWorker"});
      options.fds = {{null.get(), 1}, {ready[1], 3}};
      FSBL_ASSIGN(const Child worker, spawn(options));
      ::close(ready[1]);
      int failed = 1;
      FSBL_REQUIRE(::read(ready[0], &failed, sizeof failed) == sizeof failed && !failed);

      FSBL_ASSIGN(const SandboxReport report, read_sandbox(worker.pid()));
      FSBL_REQUIRE(report.confined());
      const std::string proc = "/proc/" + std::to_string(worker.pid());
      FSBL_REQUIRE(!read_small(proc + "/stat").empty() && !read_small(proc + "/schedstat").empty());
      perf_event_attr event{};
      event.size = sizeof event;
      event.type = PERF_TYPE_SOFTWARE;
      event.config = PERF_COUNT_SW_TASK_CLOCK;
      event.exclude_kernel = 1;
      const auto perf = [&](pid_t pid) {
        return UniqueFd(static_cast<int>(syscall(SYS_perf_event_open, &event, pid, -1, -1, 0)));
      };
      // Where perf is forbidden altogether (perf_event_paranoid), it says nothing about the worker.
      if (perf(getpid())) FSBL_REQUIRE(perf(worker.pid()));
      return {};
    }));
  }
}

TEST(Sandbox, StatusIsParsedStrictly) {
  const std::string good =
      "Name:\tx\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t "
      "\nCapInh:\t0000000000000000\n"
      "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:"
      "\t0000000000000000\n"
      "NoNewPrivs:\t1\n";
  const auto parsed = parse_sandbox(good, "test");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->confined() && parsed->dropped_user && parsed->dropped_groups);

  // One change each, and the verdict that must turn.
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return parse_sandbox(text, "test");
  };
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    const auto one =
        changed(std::string(set) + ":\t0000000000000000", std::string(set) + ":\t0000000000000400");
    ASSERT_TRUE(one);
    EXPECT_FALSE(one->confined()) << set;
    EXPECT_FALSE(changed(set, "Other")) << set;
  }
  EXPECT_FALSE(changed("NoNewPrivs:\t1", "NoNewPrivs:\t0")->confined());
  EXPECT_FALSE(changed("Uid:\t65534\t65534", "Uid:\t65534\t0")->dropped_user);
  EXPECT_FALSE(changed("Groups:\t", "Groups:\t4 0")->dropped_groups);
  EXPECT_FALSE(changed("Uid:\t65534", "Uid:\tx"));
  EXPECT_FALSE(parse_sandbox("", "test"));
}

}  // namespace
}  // namespace fsbl
