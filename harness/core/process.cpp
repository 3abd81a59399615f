#include "harness/core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace fsbl {
namespace {

struct Failure {
  int error_number;
  char step[32];
};

[[noreturn]] void fail(int report_fd, const char* step, int error_number) {
  Failure failure{error_number, {}};
  std::strncpy(failure.step, step, sizeof failure.step - 1);
  [[maybe_unused]] auto n = ::write(report_fd, &failure, sizeof failure);
  _exit(127);
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view key = text.substr(0, text.find('=') + 1);
    if (std::none_of(changes.begin(), changes.end(), [&](const auto& c) { return c.starts_with(key); }))
      merged.emplace_back(text);
  }
  return merged;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const auto& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Child dying(std::exchange(pid_, std::exchange(other.pid_, -1)));
    status_ = other.status_;
  }
  return *this;
}

Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Child::wait(Nanos timeout) {
  const Nanos deadline = mono_now_ns() + timeout;
  while (pid_ > 0) {
    const pid_t got = waitpid(pid_, &status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) {
      pid_ = -1;
      return true;
    }
    if (mono_now_ns() >= deadline) return false;
    timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
  return true;
}

std::string Child::status_text() const {
  if (WIFSIGNALED(status_)) return fmt::format("killed by SIG{}", sigabbrev_np(WTERMSIG(status_)));
  return fmt::format("exit status {}", WEXITSTATUS(status_));
}

Expected<Child> spawn(const SpawnOptions& options) {
  const std::string what = "start " + (options.argv.empty() ? std::string("nothing") : options.argv[0]);
  if (options.argv.empty()) return fault(what, "empty argv");
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fault_errno(what, errno);
  UniqueFd report_read(report[0]), report_write(report[1]);

  const auto environment = merged_environment(options.environment);
  const auto argv = pointers(options.argv);
  const auto envp = pointers(environment);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (int cpu : options.cpus) CPU_SET(cpu, &cpus);
  int highest = 2;
  for (auto [from, to] : options.fds) highest = std::max(highest, to);
  const pid_t parent = getpid();

  const pid_t pid = fork();
  if (pid < 0) return fault_errno(what, errno);
  if (pid == 0) {
    int report_fd = report_write.get();
    for (int fd : options.namespaces)
      if (setns(fd, 0) != 0) fail(report_fd, "setns", errno);
    if (!options.cpus.empty() && sched_setaffinity(0, sizeof cpus, &cpus) != 0) fail(report_fd, "sched_setaffinity", errno);
    // Lift every source above the targets first, so that one dup2 can't overwrite another's source.
    const int base = highest + 1;
    report_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, base);
    int lifted[64];
    if (options.fds.size() > 64) fail(report_fd, "too many fds", E2BIG);
    for (size_t i = 0; i < options.fds.size(); ++i) {
      lifted[i] = fcntl(options.fds[i].first, F_DUPFD_CLOEXEC, base);
      if (lifted[i] < 0) fail(report_fd, "dup", errno);
    }
    for (size_t i = 0; i < options.fds.size(); ++i)
      if (dup2(lifted[i], options.fds[i].second) < 0) fail(report_fd, "dup2", errno);
    for (int fd = 3; fd <= highest; ++fd) {
      const bool wanted = std::any_of(options.fds.begin(), options.fds.end(), [fd](auto p) { return p.second == fd; });
      if (!wanted) ::close(fd);
    }
    close_range(static_cast<unsigned>(highest) + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (options.in_child)
      if (const int error_number = options.in_child()) fail(report_fd, "prepare", error_number);
    // After in_child: a change of user id clears the parent-death signal.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(report_fd, "pdeathsig", errno);
    if (getppid() != parent) _exit(127);
    execve(argv[0], argv.data(), envp.data());
    fail(report_fd, "exec", errno);
  }
  Child child(pid);
  report_write.reset();
  Failure failure{};
  ssize_t n;
  do n = ::read(report_read.get(), &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure)) {
    child.wait(1'000'000'000);
    return fault_errno(what + ": " + failure.step, failure.error_number);
  }
  return child;
}

Expected<CommandOutput> run_command(const std::vector<std::string>& argv, Nanos timeout, size_t limit) {
  int out[2], err[2];
  const std::string what = "run " + (argv.empty() ? std::string() : argv[0]);
  if (pipe2(out, O_CLOEXEC) != 0) return fault_errno(what, errno);
  UniqueFd out_read(out[0]), out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return fault_errno(what, errno);
  UniqueFd err_read(err[0]), err_write(err[1]);
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions options;
  options.argv = argv;
  options.fds = {{null.get(), 0}, {out_write.get(), 1}, {err_write.get(), 2}};
  FSBL_ASSIGN(Child child, spawn(options));
  out_write.reset();
  err_write.reset();

  CommandOutput output;
  const Nanos deadline = mono_now_ns() + timeout;
  pollfd polls[2] = {{out_read.get(), POLLIN, 0}, {err_read.get(), POLLIN, 0}};
  std::string* texts[2] = {&output.out, &output.err};
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    const Nanos left = deadline - mono_now_ns();
    if (left <= 0) return fault(what, "no end after " + std::to_string(timeout / 1'000'000) + " ms");
    if (poll(polls, 2, static_cast<int>(left / 1'000'000) + 1) < 0 && errno != EINTR) return fault_errno(what, errno);
    for (int i = 0; i < 2; ++i) {
      if (polls[i].fd < 0 || !polls[i].revents) continue;
      char chunk[4096];
      const ssize_t n = ::read(polls[i].fd, chunk, sizeof chunk);
      if (n <= 0) polls[i].fd = -1;
      else if (texts[i]->size() < limit) texts[i]->append(chunk, static_cast<size_t>(n));
    }
  }
  if (!child.wait(deadline - mono_now_ns())) return fault(what, "did not exit");
  output.status = WIFSIGNALED(child.status()) ? 128 + WTERMSIG(child.status()) : WEXITSTATUS(child.status());
  return output;
}

}  // namespace fsbl
