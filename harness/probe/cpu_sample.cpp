// CPU time, memory and context switches of processes, and the shares of CPUs, from /proc and the process CPU
// clock.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "harness/core/clock.h"
#include "harness/core/file.h"
#include "harness/probe/host_probes.h"
#include "harness/probe/proc_parse.h"

namespace fsbl {
namespace {

constexpr uint64_t kProcFileLimit = 1 << 20;

int64_t ns_per_tick() {
  return 1'000'000'000 / sysconf(_SC_CLK_TCK);
}

// Per thread, since /proc/<pid>/status counts the switches of the main thread alone: {tid: [voluntary,
// involuntary]}.
Json thread_switches(const std::string& process_dir) {
  Json threads = Json::object();
  std::error_code error;
  std::filesystem::directory_iterator task(process_dir + "/task", error), end;
  for (; !error && task != end; task.increment(error)) {
    const std::string status = read_small(task->path() / "status");
    const auto voluntary = status_field(status, "voluntary_ctxt_switches");
    const auto involuntary = status_field(status, "nonvoluntary_ctxt_switches");
    if (voluntary && involuntary) threads[task->path().filename().string()] = {*voluntary, *involuntary};
  }
  return threads;
}

Json process_sample(pid_t pid) {
  const std::string dir = fmt::format("/proc/{}", pid);
  Json sample = {{"pid", pid}};
  const auto text = read_file(dir + "/stat", kProcFileLimit);
  if (!text) {
    sample["missing"] = fmt::format("process {} can't be read ({}): it has ended?", pid, text.error().why);
    return sample;
  }
  const auto stat = parse_process_stat(*text, ns_per_tick());
  if (!stat) {
    sample["missing"] = stat.error().message();
    return sample;
  }
  // The process CPU clock counts ns and keeps the time of ended threads, unlike /proc/<pid>/task/*/schedstat.
  // The time slice that a thread is in on another CPU is included up to its last scheduler tick only.
  clockid_t clock;
  timespec cpu;
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &cpu) == 0) {
    sample["cpu_ns"] = int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
    sample["cpu_source"] = "process CPU clock";
  } else {
    sample["cpu_ns"] = stat->user_ns + stat->system_ns;
    sample["cpu_source"] = fmt::format("/proc/<pid>/stat, in steps of {} ns", ns_per_tick());
  }
  sample["start_ticks"] = stat->start_ticks;
  sample["user_ns"] = stat->user_ns;
  sample["system_ns"] = stat->system_ns;
  sample["minor_faults"] = stat->minor_faults;
  sample["major_faults"] = stat->major_faults;
  const std::string status = read_small(dir + "/status");
  if (const auto rss = status_field(status, "VmRSS")) sample["rss_bytes"] = *rss;
  if (const auto peak = status_field(status, "VmHWM")) sample["rss_peak_bytes"] = *peak;
  sample["thread_switches"] = thread_switches(dir);
  return sample;
}

Json cpu_line_sample(const std::string& proc_stat, int cpu) {
  const auto times = parse_cpu_line(proc_stat, cpu, ns_per_tick());
  if (!times) return {{"cpu", cpu}, {"missing", times.error().message()}};
  return {{"cpu", cpu},
          {"user_ns", times->user_ns},
          {"system_ns", times->system_ns},
          {"softirq_ns", times->softirq_ns},
          {"irq_ns", times->irq_ns},
          {"steal_ns", times->steal_ns},
          {"idle_ns", times->idle_ns + times->iowait_ns}};
}

// One field's increase from one sample object to the next; the error says why there is none.
Expected<int64_t> increase(const Json& before, const Json& after, const char* field) {
  for (const Json* sample : {&before, &after}) {
    if (const auto reason = sample->find("missing"); reason != sample->end())
      return unavailable(field, reason->get<std::string>());
    if (!sample->contains(field)) return unavailable(field, "not in /proc for this process (it has ended?)");
  }
  if (before.value("pid", 0) != after.value("pid", 0) || before.value("cpu", 0) != after.value("cpu", 0))
    return unavailable(field, "the two samples cover different things");
  if (before.value("start_ticks", uint64_t{0}) != after.value("start_ticks", uint64_t{0}))
    return unavailable(field, fmt::format("pid {} is another process now", after.value("pid", 0)));
  if (before.value("cpu_source", "") != after.value("cpu_source", ""))
    return unavailable(field, "the source of the CPU time changed within the window");
  const int64_t difference = after[field].get<int64_t>() - before[field].get<int64_t>();
  if (difference < 0) return unavailable(field, fmt::format("the counter went backwards by {}", -difference));
  return difference;
}

// The sum of increases over matching entries of two lists; one that is missing makes the sum missing.
Expected<int64_t> sum_increase(const Json& before, const Json& after, size_t first, const char* field) {
  if (before.size() != after.size()) return unavailable(field, "the two samples cover different things");
  int64_t sum = 0;
  for (size_t i = first; i < after.size(); ++i) {
    FSBL_ASSIGN(const int64_t one, increase(before[i], after[i], field));
    sum += one;
  }
  return sum;
}

// Switches of the threads alive at the window's end; `which`: 0 voluntary, 1 involuntary.
Expected<int64_t> switches(const Json& before, const Json& after, size_t which) {
  FSBL_TRY(increase(before, after, "cpu_ns"));  // the same, living process
  const Json &from = before["thread_switches"], &to = after["thread_switches"];
  for (const auto& [tid, counts] : from.items())
    if (!to.contains(tid))
      return unavailable("switches", "a thread ended within the window and took its count along");
  int64_t sum = 0;
  for (const auto& [tid, counts] : to.items()) {
    const int64_t start = from.contains(tid) ? from[tid][which].get<int64_t>() : 0;
    const int64_t difference = counts[which].get<int64_t>() - start;
    if (difference < 0) return unavailable("switches", "a thread's counter went backwards");
    sum += difference;
  }
  return sum;
}

// A level at the window's end, not a difference.
Expected<int64_t> level(const Json& sample, const char* field) {
  if (const auto reason = sample.find("missing"); reason != sample.end())
    return unavailable(field, reason->get<std::string>());
  if (!sample.contains(field))
    return unavailable(field, "not in /proc/<pid>/status (the process has ended?)");
  return sample[field].get<int64_t>();
}

}  // namespace

CpuSample cpu_sample(const std::vector<pid_t>& pids, const std::vector<int>& cpus) {
  CpuSample sample;
  sample.time_ns = mono_now_ns();
  sample.processes = Json::array();
  for (const pid_t pid : pids) sample.processes.push_back(process_sample(pid));
  sample.cpus = Json::array();
  const std::string proc_stat = read_small("/proc/stat");
  for (const int cpu : cpus) sample.cpus.push_back(cpu_line_sample(proc_stat, cpu));
  return sample;
}

Json cpu_difference(const CpuSample& before, const CpuSample& after) {
  Json result = {{"window_ns", after.time_ns - before.time_ns}};
  Json missing = Json::array();
  const auto put = [&](const char* name, const Expected<int64_t>& value) {
    if (value)
      result[name] = *value;
    else
      missing.push_back({{"name", name}, {"reason", value.error().why}});
  };
  if (!before.processes.empty() && !after.processes.empty()) {
    const Json &from = before.processes[0], &to = after.processes[0];
    put("worker_cpu_ns", increase(from, to, "cpu_ns"));
    if (to.contains("cpu_source")) result["worker_cpu_source"] = to["cpu_source"];
    put("worker_user_ns", increase(from, to, "user_ns"));
    put("worker_system_ns", increase(from, to, "system_ns"));
    put("minor_faults", increase(from, to, "minor_faults"));
    put("major_faults", increase(from, to, "major_faults"));
    put("voluntary_switches", switches(from, to, 0));
    put("involuntary_switches", switches(from, to, 1));
    put("rss_bytes", level(to, "rss_bytes"));
    put("rss_peak_bytes", level(to, "rss_peak_bytes"));
    if (before.processes.size() > 1 || after.processes.size() > 1)
      put("tunnel_cpu_ns", sum_increase(before.processes, after.processes, 1, "cpu_ns"));
  }
  if (!after.cpus.empty()) {
    for (const char* field : {"user_ns", "system_ns", "softirq_ns", "irq_ns", "steal_ns", "idle_ns"})
      put(field, sum_increase(before.cpus, after.cpus, 0, field));
  }
  result["missing"] = std::move(missing);
  return result;
}

}  // namespace fsbl
