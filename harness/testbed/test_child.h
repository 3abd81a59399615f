// For tests: runs a body in a forked child that may make namespaces, as the caller or as an ordinary user.
// Whatever the body makes ends with the child.
#pragma once
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "harness/core/error.h"
#include "harness/testbed/testbed.h"

namespace fsbl {

enum class As { caller, ordinary_user };

struct ChildVerdict {
  bool skipped = false;
  std::string text;  // what failed, or why skipped; empty: all good
};

// Becomes a user without privilege (nobody, when the caller is root).
inline Expected<> become_ordinary_user() {
  if (geteuid() != 0) return {};
  if (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 ||
      setresuid(65534, 65534, 65534) != 0)
    return unavailable("become an ordinary user", errno_text(errno));
  // As after exec by that user: else its own /proc files belong to root.
  prctl(PR_SET_DUMPABLE, 1);
  return {};
}

inline ChildVerdict run_in_child(const std::function<Expected<>()>& body) {
  int report[2];
  if (pipe(report) != 0) return {false, "pipe: " + errno_text(errno)};
  const pid_t pid = fork();
  if (pid == 0) {
    ::close(report[0]);
    const Expected<> result = body();
    const std::string text = result ? std::string() : result.error().message();
    [[maybe_unused]] const auto n = ::write(report[1], text.data(), text.size());
    _exit(result ? 0 : result.error().kind == ErrorKind::unavailable ? 77 : 1);
  }
  ::close(report[1]);
  ChildVerdict verdict;
  char chunk[1024];
  for (ssize_t n; (n = ::read(report[0], chunk, sizeof chunk)) > 0;)
    verdict.text.append(chunk, static_cast<size_t>(n));
  ::close(report[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  verdict.skipped = WIFEXITED(status) && WEXITSTATUS(status) == 77;
  if (!WIFEXITED(status)) verdict.text += " (the child was killed)";
  return verdict;
}

// The same, in a child that can make testbeds: as it is if that is enough, else in a user namespace.
inline ChildVerdict run_with_testbeds(As as, const std::function<Expected<>()>& body) {
  return run_in_child([&]() -> Expected<> {
    if (as == As::ordinary_user) FSBL_TRY(become_ordinary_user());
    if (testbed_privilege(nullptr) != Privilege::enough) FSBL_TRY(enter_user_namespace());
    auto result = body();
    // Past this point nothing counts as "not possible here".
    if (!result) result.error().kind = ErrorKind::fault;
    return result;
  });
}

// In a body: the error names the condition.
#define FSBL_REQUIRE(condition)                                                                              \
  do {                                                                                                       \
    if (!(condition)) return ::fsbl::fault(#condition, "false at " __FILE__ ":" + std::to_string(__LINE__)); \
  } while (0)

// In a test: fails or skips as the child did.
#define FSBL_EXPECT_CHILD(verdict)                                 \
  do {                                                             \
    const ::fsbl::ChildVerdict fsbl_verdict_ = (verdict);          \
    if (fsbl_verdict_.skipped) GTEST_SKIP() << fsbl_verdict_.text; \
    EXPECT_EQ(fsbl_verdict_.text, "");                             \
  } while (0)

}  // namespace fsbl
