// Parsers of the /proc texts that cpu_sample() reads. Pure; times in clock ticks become ns with
// `ns_per_tick`.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/core/error.h"

namespace fsbl {

// /proc/<pid>/stat, see proc_pid_stat(5). utime and stime cover ended threads too.
struct ProcessStat {
  char state = '?';
  int64_t user_ns = 0, system_ns = 0;
  uint64_t minor_faults = 0, major_faults = 0;
  uint64_t start_ticks = 0;  // since boot: tells a process from a later one with the same pid
};
Expected<ProcessStat> parse_process_stat(std::string_view text, int64_t ns_per_tick);

// The number behind "Key:" in /proc/<pid>/status; values in kB are returned as bytes.
std::optional<uint64_t> status_field(std::string_view text, std::string_view key);

// One "cpuN" line of /proc/stat.
struct CpuTimes {
  int64_t user_ns = 0;  // with nice; guest time is part of it
  int64_t system_ns = 0, idle_ns = 0, iowait_ns = 0, irq_ns = 0, softirq_ns = 0, steal_ns = 0;
};
Expected<CpuTimes> parse_cpu_line(std::string_view proc_stat, int cpu, int64_t ns_per_tick);

}  // namespace fsbl
