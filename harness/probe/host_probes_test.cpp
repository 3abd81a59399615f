// perf events and CPU samples, against what a child process says about itself.
#include "harness/probe/host_probes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>

#include "harness/core/fd.h"
#include "harness/core/file.h"

namespace fsbl {
namespace {

constexpr int64_t kBurnNs = 50'000'000;
constexpr size_t kTouchedPages = 2000;
constexpr int kSleeps = 10;

int64_t own_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void* burn_in_a_thread(void*) {
  for (const int64_t end = own_cpu_ns() + kBurnNs; own_cpu_ns() < end;) {
  }
  return nullptr;
}

size_t page_bytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// In a thread that it starts, uses kBurnNs of CPU by its own clock; touches kTouchedPages; sleeps kSleeps
// times.
void work() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, burn_in_a_thread, nullptr) == 0) pthread_join(thread, nullptr);
  const size_t bytes = kTouchedPages * page_bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, bytes, MADV_NOHUGEPAGE);  // one fault a page
  for (size_t i = 0; i < bytes; i += page_bytes()) static_cast<volatile char*>(memory)[i] = 1;
  for (int i = 0; i < kSleeps; ++i) usleep(1000);
}

// A child that works once told to, then waits to be measured, then says how much CPU it used in all.
class WorkingChild {
 public:
  WorkingChild() {
    int go[2], answer[2];
    if (pipe(go) != 0 || pipe(answer) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(go[1]);
      char command;
      while (read(go[0], &command, 1) == 1) {
        if (command == 'w') work();
        const int64_t cpu = own_cpu_ns();
        if (write(answer[1], &cpu, sizeof cpu) != sizeof cpu) break;
      }
      _exit(0);
    }
    close(go[0]);
    close(answer[1]);
    go_.reset(go[1]);
    answer_.reset(answer[0]);
  }
  ~WorkingChild() { end(); }
  void end() {
    go_.reset();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }
  // 'w': work; '?': nothing but the answer, the CPU time used so far.
  int64_t tell(char command) {
    int64_t cpu = -1;
    if (write(go_.get(), &command, 1) != 1 || read(answer_.get(), &cpu, sizeof cpu) != sizeof cpu) return -1;
    return cpu;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd go_, answer_;
};

const Json* named(const Json& list, const std::string& name) {
  for (const Json& entry : list)
    if (entry["name"] == name || entry["name"] == name + ":u") return &entry;
  return nullptr;
}

std::string reason(const Json& list, const std::string& name) {
  const Json* entry = named(list, name);
  return entry ? (*entry)["reason"].get<std::string>() : "";
}

const char* const kAllEvents[] = {"cycles",     "instructions",     "cache-misses",   "branch-misses",
                                  "task-clock", "context-switches", "cpu-migrations", "page-faults"};

TEST(PerfProbe, CountsWhatTheProcessAndItsLaterThreadsDid) {
  WorkingChild child;
  PerfProbe probe(child.pid());
  child.tell('w');  // before the window: not counted
  const int64_t cpu_before = child.tell('?');
  probe.begin();
  child.tell('w');
  probe.end();
  const int64_t cpu_after = child.tell('w');  // after the window: not counted
  const Json counters = probe.counters(), missing = probe.missing();
  SCOPED_TRACE(counters.dump() + missing.dump());
  for (const char* name : kAllEvents) {
    EXPECT_NE(named(counters, name) != nullptr, named(missing, name) != nullptr)
        << name;  // exactly one of the two
    EXPECT_EQ(named(missing, name) != nullptr, !reason(missing, name).empty()) << name;
  }
  const Json* clock = named(counters, "task-clock");
  if (!clock) GTEST_SKIP() << "no task-clock: " << reason(missing, "task-clock");
  EXPECT_GE((*clock)["value"].get<int64_t>(), kBurnNs);
  EXPECT_LE((*clock)["value"].get<int64_t>(), cpu_after - kBurnNs - cpu_before);
  EXPECT_EQ((*clock)["scale"].get<double>(), 1.0);
  EXPECT_EQ((*clock)["raw"], (*clock)["value"]);
  if (const Json* faults = named(counters, "page-faults")) {
    EXPECT_GE((*faults)["value"].get<size_t>(), kTouchedPages);
    EXPECT_LT((*faults)["value"].get<size_t>(), 2 * kTouchedPages);
  }
  if (const Json* switches = named(counters, "context-switches")) {
    EXPECT_GE((*switches)["value"], kSleeps);
  }
  if (const Json* instructions = named(counters, "instructions")) {
    EXPECT_GT((*instructions)["value"], 0);
  }
}

TEST(PerfProbe, SecondWindowCountsFromItsOwnBegin) {
  WorkingChild child;
  PerfProbe probe(child.pid());
  probe.begin();
  child.tell('w');
  child.tell('w');
  probe.end();
  const Json first = probe.counters();
  probe.begin();
  child.tell('w');
  probe.end();
  const Json second = probe.counters();
  if (!named(first, "page-faults")) GTEST_SKIP() << reason(probe.missing(), "page-faults");
  EXPECT_GE((*named(first, "page-faults"))["value"].get<size_t>(), 2 * kTouchedPages);
  EXPECT_LT((*named(second, "page-faults"))["value"].get<size_t>(), 2 * kTouchedPages);
}

TEST(PerfProbe, ProcessThatNeverRanIsMissingAndNotZero) {
  WorkingChild child;
  PerfProbe probe(child.pid());
  probe.begin();
  child.tell('w');
  probe.end();
  const size_t usable = probe.counters().size();
  if (usable == 0) GTEST_SKIP() << "no event can be opened: " << probe.missing().dump();
  // The child goes back to sleep in read(): let the scheduler take it off its CPU first.
  while (read_small("/proc/" + std::to_string(child.pid()) + "/stat").find(") S ") == std::string::npos)
    usleep(1000);
  probe.begin();
  probe.end();
  EXPECT_TRUE(probe.counters().empty()) << probe.counters().dump();
  EXPECT_EQ(probe.missing().size(), std::size(kAllEvents));
  EXPECT_EQ(reason(probe.missing(), "task-clock"), "never scheduled (0 of 0 ns)");
}

TEST(PerfProbe, WithoutProcessOrWindowEverythingIsMissing) {
  WorkingChild child;
  const pid_t pid = child.pid();
  PerfProbe unused(pid);
  EXPECT_TRUE(unused.counters().empty());
  EXPECT_EQ(unused.missing().size(), std::size(kAllEvents));
  child.end();
  PerfProbe dead(pid);
  dead.begin();
  dead.end();
  EXPECT_TRUE(dead.counters().empty());
  EXPECT_EQ(dead.missing().size(), std::size(kAllEvents));
  EXPECT_NE(reason(dead.missing(), "task-clock").find("ESRCH"), std::string::npos) << dead.missing().dump();
}

TEST(PerfProbe, UnprivilegedCountsUserModeAndSaysSo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become an ordinary user in a child";
  if (read_small("/proc/sys/kernel/perf_event_paranoid") != "2")
    GTEST_SKIP() << "needs kernel.perf_event_paranoid = 2";
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    if (setuid(65534) != 0) _exit(1);
    PerfProbe probe(getpid());
    probe.begin();
    work();
    probe.end();
    const std::string text = Json{{"counters", probe.counters()}, {"missing", probe.missing()}}.dump();
    _exit(write(out[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(out[1]);
  std::string text(65536, '\0');
  const ssize_t size = read(out[0], text.data(), text.size());
  close(out[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_GT(size, 0);
  text.resize(static_cast<size_t>(size));
  const Json result = parse_json(text, "the child's answer").value();
  SCOPED_TRACE(text);
  ASSERT_NE(named(result["counters"], "page-faults"), nullptr);
  EXPECT_EQ((*named(result["counters"], "page-faults"))["name"], "page-faults:u");
  EXPECT_TRUE(named(result["counters"], "page-faults")->contains("note"));
  EXPECT_EQ((*named(result["counters"], "task-clock"))["name"], "task-clock");
  // They happen in the kernel only: with the kernel excluded they would read 0.
  EXPECT_NE(reason(result["missing"], "context-switches").find("perf_event_paranoid"), std::string::npos);
  EXPECT_NE(reason(result["missing"], "cpu-migrations").find("perf_event_paranoid"), std::string::npos);
}

TEST(CpuDifference, AgreesWithWhatTheChildSays) {
  WorkingChild child, tunnel;
  const int64_t cpu_before = child.tell('?');
  const CpuSample before = cpu_sample({child.pid(), tunnel.pid()}, {0});
  child.tell('w');
  tunnel.tell('w');
  const CpuSample after = cpu_sample({child.pid(), tunnel.pid()}, {0});
  const int64_t cpu_after = child.tell('?');
  const Json result = cpu_difference(before, after);
  SCOPED_TRACE(result.dump());
  EXPECT_TRUE(result["missing"].empty());
  EXPECT_EQ(result["worker_cpu_source"], "process CPU clock");
  EXPECT_GE(result["worker_cpu_ns"].get<int64_t>(), kBurnNs * 9 / 10);
  EXPECT_LE(result["worker_cpu_ns"].get<int64_t>(), cpu_after - cpu_before + kBurnNs / 10);
  EXPECT_GE(result["tunnel_cpu_ns"].get<int64_t>(), kBurnNs * 9 / 10);
  EXPECT_GE(result["window_ns"].get<int64_t>(), kBurnNs);
  EXPECT_GE(result["minor_faults"].get<size_t>(), kTouchedPages);
  EXPECT_GE(result["rss_bytes"].get<size_t>(), kTouchedPages * page_bytes());
  EXPECT_GE(result["rss_peak_bytes"], result["rss_bytes"]);
  EXPECT_GE(result["voluntary_switches"].get<int>(), kSleeps);
  for (const char* name : {"user_ns", "system_ns", "softirq_ns", "irq_ns", "steal_ns", "idle_ns"})
    EXPECT_GE(result[name].get<int64_t>(), 0) << name;
}

TEST(CpuDifference, WithoutTunnelOrCpusTheirFieldsAreAbsent) {
  const CpuSample before = cpu_sample({getpid()}, {}), after = cpu_sample({getpid()}, {});
  const Json result = cpu_difference(before, after);
  EXPECT_TRUE(result["missing"].empty()) << result.dump();
  EXPECT_FALSE(result.contains("tunnel_cpu_ns"));
  EXPECT_FALSE(result.contains("steal_ns"));
}

TEST(CpuDifference, EndedProcessAndAbsentCpuAreMissing) {
  WorkingChild child;
  const CpuSample before = cpu_sample({child.pid()}, {0, 1 << 20});
  const pid_t pid = child.pid();
  child.end();
  const Json result = cpu_difference(before, cpu_sample({pid}, {0, 1 << 20}));
  for (const char* name : {"worker_cpu_ns", "rss_bytes", "voluntary_switches", "minor_faults", "steal_ns"}) {
    EXPECT_FALSE(result.contains(name)) << name;
    EXPECT_FALSE(reason(result["missing"], name).empty()) << name;
  }
}

TEST(CpuDifference, BackwardsCountersAndReusedPidsAreMissing) {
  const Json process = {{"pid", 7},
                        {"cpu_ns", 100},
                        {"cpu_source", "process CPU clock"},
                        {"start_ticks", 5},
                        {"user_ns", 60},
                        {"system_ns", 40},
                        {"minor_faults", 9},
                        {"major_faults", 0},
                        {"rss_bytes", 4096},
                        {"thread_switches", {{"7", {3, 4}}, {"8", {1, 1}}}}};
  const CpuSample before{1000, Json::array({process}), Json::array()};
  const auto after = [&](const auto& change) {
    CpuSample sample = before;
    sample.time_ns = 2000;
    change(sample.processes[0]);
    return cpu_difference(before, sample);
  };
  const Json same = after([](Json&) {});
  EXPECT_EQ(same["worker_cpu_ns"], 0);
  EXPECT_EQ(same["window_ns"], 1000);
  EXPECT_EQ(reason(same["missing"], "rss_peak_bytes"), "not in /proc/<pid>/status (the process has ended?)");

  const Json backwards = after([](Json& p) { p["cpu_ns"] = 99, p["minor_faults"] = 10; });
  EXPECT_FALSE(backwards.contains("worker_cpu_ns"));
  EXPECT_EQ(reason(backwards["missing"], "worker_cpu_ns"), "the counter went backwards by 1");
  EXPECT_EQ(backwards["minor_faults"], 1);

  const Json reused = after([](Json& p) { p["start_ticks"] = 6, p["cpu_ns"] = 500; });
  EXPECT_FALSE(reused.contains("worker_cpu_ns"));
  EXPECT_NE(reason(reused["missing"], "worker_cpu_ns").find("another process"), std::string::npos);

  const Json more = after([](Json& p) {
    p["thread_switches"] = {{"7", {5, 4}}, {"8", {1, 2}}, {"9", {7, 0}}};
  });
  EXPECT_EQ(more["voluntary_switches"], 2 + 0 + 7);
  EXPECT_EQ(more["involuntary_switches"], 0 + 1 + 0);

  const Json ended = after([](Json& p) { p["thread_switches"].erase("8"); });
  EXPECT_FALSE(ended.contains("voluntary_switches"));
  EXPECT_FALSE(reason(ended["missing"], "voluntary_switches").empty());
}

}  // namespace
}  // namespace fsbl
