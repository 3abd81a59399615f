// Child processes with one owner. A child dies with its parent: PR_SET_PDEATHSIG(SIGKILL) is set before exec, so a
// killed controller or agent leaves no process behind. Spawn only from a thread that lives as long as the process
// (the kernel ties the signal to the thread).
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/fd.h"

namespace fsbl {

struct SpawnOptions {
  std::vector<std::string> argv;                // argv[0] is the path to run; never holds a secret
  std::vector<std::string> environment;         // "K=V", added to (or replacing) the parent's
  std::vector<std::pair<int, int>> fds;         // {parent's fd, child's fd}; every other fd above 2 is closed
  std::vector<int> namespaces;                  // namespace fds to setns() into, in order
  std::vector<int> cpus;                        // affinity; empty: inherit
  std::function<int()> in_child;                // last step before exec; async-signal-safe only; 0 or errno
};

// A child process; the destructor kills (SIGKILL) and reaps it.
class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  void signal(int number) const;
  // Waits at most `timeout`; true when it ended (then status() is valid and the child reaped).
  bool wait(Nanos timeout);
  // As waitpid() gave it: "exit status 3", "killed by SIGKILL".
  std::string status_text() const;
  int status() const { return status_; }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

// Starts a child. A failure before or in exec is reported here, with the step that failed.
Expected<Child> spawn(const SpawnOptions& options);

struct CommandOutput {
  int status = 0;  // exit status, or 128 + signal
  std::string out, err;
};
// Runs a command to its end with /dev/null as input; each stream is cut at `limit` bytes.
Expected<CommandOutput> run_command(const std::vector<std::string>& argv, Nanos timeout, size_t limit = 1 << 20);

}  // namespace fsbl
