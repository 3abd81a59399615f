// What a worker may not do. The agent holds the host's privilege; a worker gets descriptors and nothing else.
//
// Before exec (drop_worker_privileges): no new privileges, capability bounding and ambient sets empty, no
// capabilities, no core file. Where user ids are there to change to (real root, or a container's), also the
// user: the one who called sudo, else nobody (65534). In a user namespace that has one user id (rootless
// runs) the id stays; it is then the invoking user, and the empty bounding set keeps exec from giving
// capabilities back to "0".
//
// After exec: exec makes a process dumpable again, so the worker itself calls prctl(PR_SET_DUMPABLE, 0)
// before it reads a secret. That keeps same-user debuggers out and keys out of core files; the agent, which
// has CAP_SYS_PTRACE as root and in its own user namespace alike, can still read its /proc files and open
// perf events on it.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "harness/core/error.h"
#include "harness/core/fd.h"

namespace fsbl {

// For SpawnOptions::in_child. Async-signal-safe; returns 0 or the errno of the step that failed: a worker
// that can't be confined must not start.
int drop_worker_privileges() noexcept;

// A worker's confinement as the kernel tells it (/proc/PID/status), read by the agent after spawn().
struct SandboxReport {
  uid_t uid = 0;                // real user id, seen from the reader's user namespace
  bool dropped_user = false;    // no user id is 0
  bool dropped_groups = false;  // no group id is 0, supplementary ones included
  bool no_new_privs = false;
  bool caps_dropped = false;      // permitted, effective, inheritable and ambient sets are empty
  bool bounding_dropped = false;  // bounding set is empty

  // Holds in every mode; dropped_user holds where there was another id to change to.
  bool confined() const { return no_new_privs && caps_dropped && bounding_dropped; }
};
Expected<SandboxReport> read_sandbox(pid_t pid);
// The same from the text of a status file. `what` begins the error.
Expected<SandboxReport> parse_sandbox(const std::string& status, const std::string& what);

// The worker's program, opened while the agent may still reach it (a build tree below a 0700 home folder).
// Its number is above any that spawn() hands to a child, so it is still open when the child execs;
// close-on-exec ends it there. The file must be executable for everybody; its dynamic libraries are found by
// path as always.
Expected<UniqueFd> open_worker(const std::filesystem::path& program);
// argv[0] for spawn(): runs what `program_fd` is open on, whatever folder it lies in.
std::string worker_exec_path(int program_fd);

}  // namespace fsbl
