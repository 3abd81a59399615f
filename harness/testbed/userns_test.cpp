// Privilege: which way a process may make testbeds, and what entering a user namespace changes.
#include "harness/testbed/userns.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <thread>

#include "harness/core/file.h"
#include "harness/testbed/link.h"
#include "harness/testbed/test_child.h"

namespace fsbl {
namespace {

namespace fs = std::filesystem;

// A folder like /proc/sys with the given settings.
class Settings {
 public:
  explicit Settings(std::initializer_list<std::pair<const char*, const char*>> values)
      : root_(fs::temp_directory_path() / ("fsbl_userns_" + std::to_string(getpid()))) {
    for (const auto& [name, value] : values) {
      fs::create_directories((root_ / name).parent_path());
      EXPECT_TRUE(write_file_atomic(root_ / name, value));
    }
  }
  ~Settings() { fs::remove_all(root_); }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(UserNamespace, RefusalsAreExplainedWithTheFix) {
  const struct {
    std::pair<const char*, const char*> setting;
    UserNamespaceStep step;
    const char* fix;
  } cases[] = {
      {{"user/max_user_namespaces", "0\n"}, {"unshare", ENOSPC}, "sysctl user.max_user_namespaces=10000"},
      {{"kernel/unprivileged_userns_clone", "0\n"},
       {"unshare", EPERM},
       "sysctl kernel.unprivileged_userns_clone=1"},
      {{"kernel/apparmor_restrict_unprivileged_userns", "1\n"},
       {"uid_map", EPERM},
       "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
      {{"user/max_user_namespaces", "5\n"}, {"unshare", ENOSPC}, "raise user.max_user_namespaces"},
      {{"user/max_user_namespaces", "5\n"}, {"unshare", EPERM}, "run as root"},
  };
  for (const auto& c : cases) {
    const Settings settings{c.setting};
    const Error error = explain(c.step, settings.root());
    EXPECT_EQ(error.kind, ErrorKind::unavailable);
    EXPECT_NE(error.fix.find(c.fix), std::string::npos) << error.message();
  }
}

TEST(UserNamespace, InvokingUserIsRootInsideAndOwnsItsFilesOutside) {
  const auto path = fs::temp_directory_path() / ("fsbl_owner_" + std::to_string(getpid()));
  const uid_t expected = geteuid() == 0 ? 65534 : geteuid();
  FSBL_EXPECT_CHILD(run_in_child([&]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    FSBL_TRY(enter_user_namespace());
    FSBL_REQUIRE(geteuid() == 0 && getegid() == 0);
    FSBL_REQUIRE(read_small("/proc/self/setgroups") == "deny");
    FSBL_ASSIGN(const LinkInfo lo, find_link("lo"));
    FSBL_REQUIRE(lo.up);
    FSBL_REQUIRE(testbed_privilege(nullptr) == Privilege::enough);
    return write_file_atomic(path, "mine");
  }));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  fs::remove(path);
  EXPECT_EQ(info.st_uid, expected);
}

TEST(UserNamespace, OtherThreadsAreNamedAsTheReason) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    int pair[2];
    FSBL_REQUIRE(pipe(pair) == 0);
    std::thread other([&] {
      char byte;
      [[maybe_unused]] const auto n = ::read(pair[0], &byte, 1);
    });
    const auto entered = enter_user_namespace();
    ::close(pair[1]);
    other.join();
    FSBL_REQUIRE(!entered && entered.error().why.find("thread") != std::string::npos);
    FSBL_TRY(enter_user_namespace());  // joined: now it works, at once
    return {};
  }));
}

TEST(Privilege, OrdinaryUserNeedsAUserNamespace) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    std::string why;
    const Privilege privilege = testbed_privilege(&why);
    if (privilege == Privilege::none) return unavailable("user namespaces", why);
    FSBL_REQUIRE(privilege == Privilege::through_user_namespace && why.empty());
    return {};
  }));
}

TEST(Privilege, NoneSaysWhy) {
  FSBL_EXPECT_CHILD(run_in_child([]() -> Expected<> {
    FSBL_TRY(become_ordinary_user());
    FSBL_TRY(enter_user_namespace());
    // In here the limit is this namespace's own. User id 0 stays, its capabilities go.
    const UniqueFd file(::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC));
    FSBL_REQUIRE(::write(file.get(), "0", 1) == 1);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    FSBL_REQUIRE(syscall(SYS_capset, &header, none) == 0);
    std::string why;
    FSBL_REQUIRE(testbed_privilege(&why) == Privilege::none);
    FSBL_REQUIRE(why.find("user.max_user_namespaces is 0") != std::string::npos);
    FSBL_REQUIRE(testbed_privilege(nullptr) == Privilege::none);
    return {};
  }));
}

}  // namespace
}  // namespace fsbl
