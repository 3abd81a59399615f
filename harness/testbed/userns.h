// Entering a user namespace, in steps that a forked child may try as well. Internal to this layer; testbed.h
// has what others use.
#pragma once
#include <filesystem>

#include "harness/core/error.h"

namespace fsbl {

// A step of entering that failed, or {nullptr, 0}.
struct UserNamespaceStep {
  const char* name = nullptr;  // "unshare", "setgroups", "uid_map", "gid_map", "mount", "loopback"
  int error_number = 0;
};

// Async-signal-safe. After a failure of a later step than "unshare" the process is neither here nor there:
// exit.
UserNamespaceStep try_user_namespace() noexcept;

// Sets loopback of the calling thread's network namespace up; 0 or errno. Async-signal-safe.
int loopback_up() noexcept;

// Why the step failed, by what the kernel's settings below `proc_sys` forbid, and the fix.
Error explain(const UserNamespaceStep& step, const std::filesystem::path& proc_sys = "/proc/sys");

}  // namespace fsbl
