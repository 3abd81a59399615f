// Probes that the agent runs beside a worker: perf events, CPU time, interface counters, link capture.
// None is on the load path; each is read at the window's two ends only. One thread (the agent's).
#pragma once
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"

namespace fsbl {

// Software and hardware events of one process and the threads it starts later (inherit). Opened before the worker
// creates its threads, counting starts with begin() and stops with end().
class PerfProbe {
 public:
  explicit PerfProbe(pid_t pid);
  ~PerfProbe();
  void begin();
  void end();
  // [{name, value, time_enabled_ns, time_running_ns, scale}] and [{name, reason}] for those the host lacks.
  Json counters() const;
  Json missing() const;

 private:
  struct Event;
  std::vector<Event> events_;
};

// CPU time, faults, context switches and RSS of processes, and steal/softirq/irq of CPUs, as a difference of two moments.
struct CpuSample {
  int64_t time_ns = 0;                                  // CLOCK_MONOTONIC
  Json processes;                                       // per pid: utime, stime (ns), rss_bytes, ctx switches
  Json cpus;                                            // per CPU: user, system, softirq, irq, steal, idle (ns)
};
CpuSample cpu_sample(const std::vector<pid_t>& pids, const std::vector<int>& cpus);
// {window_ns, worker_cpu_ns, tunnel_cpu_ns, steal_ns, softirq_ns, rss_bytes, voluntary_switches, ...}; the first pid
// is the worker, the rest are tunnel daemons.
Json cpu_difference(const CpuSample& before, const CpuSample& after);

// A packet socket on the outer link that looks for a byte string (the canary) in every frame, both directions.
class LinkCapture {
 public:
  static Expected<LinkCapture> open(const std::string& link);
  int fd() const;                                       // poll for POLLIN, then call drain()
  void drain(std::string_view canary);                  // bounded work; counts frames and matches
  uint64_t frames() const;
  uint64_t matches() const;
  uint64_t dropped();                                   // frames the kernel dropped before us (PACKET_STATISTICS)
  LinkCapture(LinkCapture&&) noexcept;
  ~LinkCapture();

 private:
  struct State;
  explicit LinkCapture(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace fsbl
