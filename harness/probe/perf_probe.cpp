// PerfProbe: perf_event_open(2) on one process and the threads it starts later.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cmath>
#include <optional>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/probe/host_probes.h"

namespace fsbl {
namespace {

// What an event still says when the kernel side must be left out (perf_event_paranoid >= 2 without
// CAP_PERFMON).
enum class UserOnly {
  narrower,   // counts user mode only, and is renamed "x:u"
  same,       // a clock: the kernel ignores the exclusion
  worthless,  // happens in the kernel only: would read 0 and mean nothing
};

struct EventKind {
  const char* name;
  uint32_t type;
  uint64_t config;
  UserOnly user_only;
};

// The hardware events share one group, so that ratios between them (IPC) are of the same moments.
constexpr EventKind kEvents[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, UserOnly::narrower},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, UserOnly::narrower},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, UserOnly::narrower},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, UserOnly::narrower},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, UserOnly::same},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, UserOnly::worthless},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, UserOnly::worthless},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, UserOnly::narrower},
};

// As read(2) gives it for PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING; sums over
// inherited events.
struct Reading {
  uint64_t value = 0, time_enabled_ns = 0, time_running_ns = 0;
};

UniqueFd open_event(const EventKind& kind, pid_t pid, int group, bool exclude_kernel) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = kind.type;
  attr.config = kind.config;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.inherit = 1;
  attr.disabled = group < 0;  // a group's members follow their leader
  attr.exclude_kernel = exclude_kernel;
  attr.exclude_hv = exclude_kernel;
  return UniqueFd(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC)));
}

bool is_refusal(int error_number) {
  return error_number == EACCES || error_number == EPERM;
}

std::string open_failure(const EventKind& kind, int error_number) {
  const bool hardware = kind.type == PERF_TYPE_HARDWARE;
  if (hardware && (error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENODEV))
    return errno_text(error_number) + "; this host has no such counter (no PMU in this virtual machine?)";
  if (is_refusal(error_number))
    return fmt::format("{}; kernel.perf_event_paranoid is {}: needs CAP_PERFMON", errno_text(error_number),
                       read_small("/proc/sys/kernel/perf_event_paranoid", "unreadable"));
  return errno_text(error_number);
}

}  // namespace

struct PerfProbe::Event {
  std::string name;
  std::string note;      // how it differs from what was asked for
  UniqueFd fd;           // closed: could not be opened, and `failure` says why
  bool follows = false;  // member of a group: enabled and disabled by its leader
  std::string failure;
  std::optional<Reading> before, after;

  void read_into(std::optional<Reading>& reading) {
    Reading now;
    errno = 0;
    if (::read(fd.get(), &now, sizeof now) == sizeof now) {
      reading = now;
    } else {
      reading.reset();
      // Zero bytes: the kernel could not schedule the event (its group does not fit the PMU).
      failure = errno ? "read: " + errno_text(errno) : "the kernel put the event in error state (PMU busy?)";
    }
  }
  // The window's counts, or why there are none.
  Expected<Reading> window() const;
};

Expected<Reading> PerfProbe::Event::window() const {
  if (!failure.empty()) return unavailable(name, failure);
  if (!before || !after) return unavailable(name, "never read: the window was not begun and ended");
  const Reading counts{after->value - before->value, after->time_enabled_ns - before->time_enabled_ns,
                       after->time_running_ns - before->time_running_ns};
  if (counts.time_running_ns == 0)
    return unavailable(name, fmt::format("never scheduled (0 of {} ns)", counts.time_enabled_ns));
  return counts;
}

PerfProbe::PerfProbe(pid_t pid) {
  int leader = -1;  // of the hardware group
  for (const EventKind& kind : kEvents) {
    Event event;
    event.name = kind.name;
    const bool hardware = kind.type == PERF_TYPE_HARDWARE;
    int group = hardware ? leader : -1;
    const auto try_open = [&](bool exclude_kernel) {
      event.fd = open_event(kind, pid, group, exclude_kernel);
      if (!event.fd && group >= 0 &&
          errno == EINVAL) {  // the group has no room: count it alone, with its own scale
        group = -1;
        event.fd = open_event(kind, pid, group, exclude_kernel);
      }
      return static_cast<bool>(event.fd);
    };
    if (!try_open(false)) {
      int error_number = errno;
      if (is_refusal(error_number) && kind.user_only != UserOnly::worthless) {
        if (try_open(true)) {
          if (kind.user_only == UserOnly::narrower) {
            event.name += ":u";
            event.note = "user mode only: kernel.perf_event_paranoid forbids counting the kernel";
          }
        } else {
          error_number = errno;
        }
      }
      if (!event.fd) event.failure = open_failure(kind, error_number);
    }
    if (event.fd && hardware) {
      event.follows = group >= 0;
      if (leader < 0) leader = event.fd.get();
    }
    events_.push_back(std::move(event));
  }
}

PerfProbe::~PerfProbe() = default;

// Differences of two readings, not PERF_EVENT_IOC_RESET: a reset leaves the times and the counts of ended
// threads.
void PerfProbe::begin() {
  for (Event& event : events_)
    if (event.fd) event.read_into(event.before);
  for (Event& event : events_)
    if (event.fd && !event.follows && ioctl(event.fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0)
      event.failure = "enable: " + errno_text(errno);
}

void PerfProbe::end() {
  for (Event& event : events_)
    if (event.fd && !event.follows && ioctl(event.fd.get(), PERF_EVENT_IOC_DISABLE, 0) != 0)
      event.failure = "disable: " + errno_text(errno);
  for (Event& event : events_)
    if (event.fd) event.read_into(event.after);
}

Json PerfProbe::counters() const {
  Json counters = Json::array();
  for (const Event& event : events_) {
    const auto counts = event.window();
    if (!counts) continue;
    // The kernel shares too few counters among events by turns: extrapolate to the whole time, and show by
    // how much.
    const double scale =
        static_cast<double>(counts->time_enabled_ns) / static_cast<double>(counts->time_running_ns);
    const bool whole = counts->time_enabled_ns == counts->time_running_ns;
    const auto value = whole
                           ? counts->value
                           : static_cast<uint64_t>(std::llround(static_cast<double>(counts->value) * scale));
    Json counter = {{"name", event.name},
                    {"value", value},
                    {"raw", counts->value},
                    {"time_enabled_ns", counts->time_enabled_ns},
                    {"time_running_ns", counts->time_running_ns},
                    {"scale", scale}};
    if (!event.note.empty()) counter["note"] = event.note;
    counters.push_back(std::move(counter));
  }
  return counters;
}

Json PerfProbe::missing() const {
  Json missing = Json::array();
  for (const Event& event : events_)
    if (const auto counts = event.window(); !counts)
      missing.push_back({{"name", event.name}, {"reason", counts.error().why}});
  return missing;
}

}  // namespace fsbl
