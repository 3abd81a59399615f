#include "harness/testbed/environment.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <netlink/version.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <vector>

#include "harness/core/file.h"
#include "harness/testbed/environment_parts.h"

namespace fsbl {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSysctls[] = {"net.core.rmem_max",
                                    "net.core.wmem_max",
                                    "net.core.rmem_default",
                                    "net.core.wmem_default",
                                    "net.core.busy_poll",
                                    "net.core.busy_read",
                                    "net.core.netdev_budget",
                                    "net.core.netdev_budget_usecs",
                                    "net.core.netdev_max_backlog",
                                    "net.core.default_qdisc",
                                    "net.core.bpf_jit_enable",
                                    "net.ipv4.tcp_rmem",
                                    "net.ipv4.tcp_wmem",
                                    "net.ipv4.tcp_congestion_control",
                                    "net.ipv4.tcp_timestamps",
                                    "net.ipv4.tcp_sack",
                                    "net.ipv4.tcp_limit_output_bytes",
                                    "net.ipv4.tcp_notsent_lowat",
                                    "kernel.numa_balancing",
                                    "kernel.timer_migration",
                                    "kernel.nmi_watchdog"};

// A stable 64-bit FNV-1a: tells whether a text changed without showing it. No secret depends on it.
std::string fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("fnv1a64:{:016x}", hash);
}

std::string sysctl_path(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return "/proc/sys/" + name;
}

Json sysctl_environment() {
  Json sysctls = Json::object();
  for (const char* name : kSysctls)
    sysctls[name] =
        file_fact(sysctl_path(name), "not in this kernel, or not shown in this network namespace");
  // The scheduler's knobs have other names in each kernel.
  std::vector<std::string> scheduler;
  std::error_code error;
  for (fs::directory_iterator entry("/proc/sys/kernel", error), end; !error && entry != end;
       entry.increment(error))
    if (const std::string name = entry->path().filename();
        name.starts_with("sched_") && entry->is_regular_file(error))
      scheduler.push_back("kernel." + name);
  std::sort(scheduler.begin(), scheduler.end());
  for (const std::string& name : scheduler) sysctls[name] = file_fact(sysctl_path(name));
  return sysctls;
}

Json preemption(std::string_view version) {
  if (const std::string chosen = bracketed(read_small("/sys/kernel/debug/sched/preempt")); !chosen.empty())
    return chosen;
  for (const char* model : {"PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT_LAZY", "PREEMPT"})
    if (version.find(model) != version.npos) return model;
  return missing_fact("uname -v names no preemption model, and debugfs is not mounted");
}

Json kernel_environment() {
  utsname name{};
  uname(&name);  // fails only for a bad address; nodename, the host's name, is left out
  Json kernel = {{"release", name.release}, {"version", name.version}};
  if (const auto cmdline = read_file("/proc/cmdline", 1 << 16)) {
    kernel["cmdline_digest"] = fingerprint(*cmdline);
    kernel["cmdline_options"] = speed_options(*cmdline);
  } else {
    kernel["cmdline_digest"] = kernel["cmdline_options"] = missing_fact(cmdline.error().why);
  }
  kernel["preempt"] = preemption(name.version);
  return kernel;
}

Json memory_bytes() {
  std::istringstream meminfo(read_small("/proc/meminfo"));
  std::string key;
  uint64_t kib = 0;
  while (meminfo >> key >> kib) {
    if (key == "MemTotal:") return kib * 1024;
    meminfo.ignore(256, '\n');
  }
  return missing_fact("no MemTotal in /proc/meminfo");
}

Json operating_system() {
  std::istringstream release(read_small("/etc/os-release"));
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with(kKey)) continue;
    line.erase(0, kKey.size());
    std::erase(line, '"');
    return line;
  }
  return missing_fact("no PRETTY_NAME in /etc/os-release");
}

Json library_versions() {
  Json libraries = {{"glibc", gnu_get_libc_version()},
                    {"libnl", fmt::format("{}.{}.{}", nl_ver_maj, nl_ver_min, nl_ver_mic)}};
  // This layer does not use OpenSSL, but the program that it is part of may: ask the libcrypto that is
  // loaded.
  using Version = const char* (*)(int);
  const auto openssl_version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "OpenSSL_version"));
  libraries["openssl"] = openssl_version ? Json(openssl_version(0)) : missing_fact("libcrypto is not loaded");
  return libraries;
}

Json clock_sync() {
  timex clock{};
  clock.modes = 0;  // read only
  const int state = adjtimex(&clock);
  if (state < 0) return missing_fact("adjtimex: " + errno_text(errno));
  return {{"synchronized", state != TIME_ERROR && !(clock.status & STA_UNSYNC)},
          {"estimated_error_us", clock.esterror},
          {"maximum_error_us", clock.maxerror}};
}

}  // namespace

Json missing_fact(const std::string& reason) {
  return "missing: " + reason;
}

Json file_fact(const fs::path& path, const std::string& absent) {
  const auto text = read_file(path, 1 << 16);
  if (!text) return missing_fact(absent.empty() ? text.error().message() : absent);
  std::string value = read_small(path);
  std::replace(value.begin(), value.end(), '\t', ' ');  // "4096\t131072\t6291456"
  return value;
}

Json speed_options(std::string_view cmdline) {
  constexpr std::string_view kNames[] = {"isolcpus",
                                         "nohz_full",
                                         "nohz",
                                         "rcu_nocbs",
                                         "irqaffinity",
                                         "mitigations",
                                         "nosmt",
                                         "idle",
                                         "preempt",
                                         "threadirqs",
                                         "tsc",
                                         "clocksource",
                                         "nmi_watchdog",
                                         "iommu",
                                         "intel_iommu",
                                         "amd_iommu",
                                         "intel_pstate",
                                         "amd_pstate",
                                         "cpufreq.off",
                                         "cpuidle.off",
                                         "hugepages",
                                         "hugepagesz",
                                         "default_hugepagesz",
                                         "numa_balancing",
                                         "transparent_hugepage",
                                         "intel_idle.max_cstate",
                                         "processor.max_cstate"};
  Json options = Json::object();
  std::istringstream words{std::string(cmdline)};
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) continue;
    options[name] = equals == word.npos ? "" : word.substr(equals + 1);
  }
  return options;
}

Json environment(const std::string& link) {
  Json host = Json::object();
  host["cpu"] = cpu_environment();
  host["memory_bytes"] = memory_bytes();
  host["transparent_hugepages"] = [] {
    const std::string mode = bracketed(read_small("/sys/kernel/mm/transparent_hugepage/enabled"));
    return mode.empty() ? missing_fact("not in this kernel") : Json(mode);
  }();
  host["kernel"] = kernel_environment();
  host["clocksource"] = file_fact("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  host["container"] = container_environment();
  host["virtual_machine"] = virtual_machine_environment();
  host["boot_id"] = file_fact("/proc/sys/kernel/random/boot_id");
  host["os"] = operating_system();
  host["libraries"] = library_versions();
  host["sysctls"] = sysctl_environment();
  host["irq_affinity"] = irq_environment(link);
  host["link"] = link_environment(link);
  host["clock_sync"] = clock_sync();
  return host;
}

std::string speed_relevant(const Json& environment) {
  Json relevant = environment;
  for (const char* volatile_fact : {"boot_id", "clock_sync"}) relevant.erase(volatile_fact);
  return canonical_json(relevant);
}

}  // namespace fsbl
