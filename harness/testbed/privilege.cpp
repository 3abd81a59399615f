#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/testbed/testbed.h"
#include "harness/testbed/userns.h"

namespace fsbl {
namespace {

// Runs one attempt in a forked child, whose namespaces end with it. Only a try tells: user id 0 may lack the
// right (a container), others may have it (file capabilities), and a security module may say no to anybody.
UserNamespaceStep in_child(UserNamespaceStep (*attempt)() noexcept) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return {"pipe", errno};
  const UniqueFd read_end(report[0]);
  UniqueFd write_end(report[1]);
  const pid_t pid = fork();
  if (pid < 0) return {"fork", errno};
  if (pid == 0) {
    // The address of the step's name, a string literal, means the same in the parent.
    const UserNamespaceStep failed = attempt();
    [[maybe_unused]] const auto n = ::write(report[1], &failed, sizeof failed);
    _exit(0);
  }
  write_end.reset();
  UserNamespaceStep failed;
  ssize_t n;
  do n = ::read(read_end.get(), &failed, sizeof failed);
  while (n < 0 && errno == EINTR);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // A child that a seccomp filter killed says nothing.
  return n == static_cast<ssize_t>(sizeof failed) ? failed : UserNamespaceStep{"attempt was killed", EPERM};
}

UserNamespaceStep try_directly() noexcept {
  if (unshare(CLONE_NEWNET) != 0) return {"unshare", errno};
  const int error_number = loopback_up();
  return error_number ? UserNamespaceStep{"loopback", error_number} : UserNamespaceStep{};
}

}  // namespace

Privilege testbed_privilege(std::string* why_none) {
  if (!in_child(try_directly).name) return Privilege::enough;
  const UserNamespaceStep failed = in_child(try_user_namespace);
  if (!failed.name) return Privilege::through_user_namespace;
  if (why_none) *why_none = explain(failed).message();
  return Privilege::none;
}

}  // namespace fsbl
