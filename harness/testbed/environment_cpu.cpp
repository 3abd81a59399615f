// The processor, and whether this host is a container or a virtual machine.
#include <fmt/format.h>
#include <fnmatch.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "harness/core/file.h"
#include "harness/testbed/environment_parts.h"

namespace fsbl {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCpuDir = "/sys/devices/system/cpu";

// The kernel's folders of single CPUs, cpu0, cpu1, …; offline ones lack the topology folder.
std::vector<fs::path> online_cpus() {
  std::vector<fs::path> cpus;
  std::error_code error;
  for (fs::directory_iterator entry(kCpuDir, error), end; !error && entry != end; entry.increment(error))
    if (fnmatch("cpu[0-9]*", entry->path().filename().c_str(), 0) == 0 &&
        fs::exists(entry->path() / "topology", error))
      cpus.push_back(entry->path());
  return cpus;
}

// The distinct values of one file over all CPUs: the value when they agree, "a, b" when they don't.
Json over_cpus(const std::vector<fs::path>& cpus, const char* file, const std::string& absent) {
  std::set<std::string> values;
  for (const fs::path& cpu : cpus)
    if (const std::string value = read_small(cpu / file); !value.empty()) values.insert(value);
  if (values.empty()) return missing_fact(absent);
  return fmt::format("{}", fmt::join(values, ", "));
}

Json topology(const std::vector<fs::path>& cpus) {
  std::set<std::string> packages;
  std::map<std::string, int> threads_of_core;
  for (const fs::path& cpu : cpus) {
    const std::string package = read_small(cpu / "topology/physical_package_id");
    packages.insert(package);
    ++threads_of_core[package + "/" + read_small(cpu / "topology/die_id") + "/" +
                      read_small(cpu / "topology/core_id")];
  }
  if (cpus.empty()) {
    const Json none = missing_fact("no CPU topology in " + std::string(kCpuDir));
    return {{"cores", none}, {"threads_per_core", none}, {"sockets", none}};
  }
  int most = 0;
  for (const auto& [core, threads] : threads_of_core) most = std::max(most, threads);
  return {{"cores", threads_of_core.size()}, {"threads_per_core", most}, {"sockets", packages.size()}};
}

Json max_mhz(const std::vector<fs::path>& cpus) {
  Json khz = over_cpus(cpus, "cpufreq/cpuinfo_max_freq", "no cpufreq");
  const std::string text = khz.get<std::string>();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return khz;  // missing, or several
  return value / 1000;
}

Json numa_nodes() {
  int nodes = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/sys/devices/system/node", error), end; !error && entry != end;
       entry.increment(error))
    nodes += fnmatch("node[0-9]*", entry->path().filename().c_str(), 0) == 0;
  return nodes > 0 ? Json(nodes) : missing_fact("no /sys/devices/system/node");
}

Json mitigations() {
  std::map<std::string, std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(fs::path(kCpuDir) / "vulnerabilities", error), end;
       !error && entry != end; entry.increment(error))
    found[entry->path().filename()] = read_small(entry->path(), "missing: unreadable");
  return found.empty() ? missing_fact("no " + std::string(kCpuDir) + "/vulnerabilities") : Json(found);
}

bool hypervisor_flag(std::string_view flags) {
  return (" " + std::string(flags) + " ").find(" hypervisor ") != std::string::npos;
}

// The 12 letters with which a hypervisor introduces itself, e.g. "KVMKVMKVM"; empty when it does not.
std::string hypervisor_signature() {
#if defined(__x86_64__)
  constexpr unsigned kHypervisorLeaf = 0x40000000;
  unsigned words[4] = {};
  __cpuid(kHypervisorLeaf, words[0], words[1], words[2], words[3]);
  std::string letters(12, '\0');
  std::memcpy(letters.data(), &words[1], letters.size());
  std::erase_if(letters, [](char c) { return c < ' ' || c > '~'; });
  return letters;
#else
  return {};
#endif
}

}  // namespace

std::string cpuinfo_value(std::string_view cpuinfo, std::string_view key) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == line.npos ? "" : line.substr(value);
  }
  return {};
}

std::string bracketed(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']', open == text.npos ? 0 : open);
  if (open == text.npos || close == text.npos) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

Json cpu_environment() {
  const std::string cpuinfo = read_small("/proc/cpuinfo");
  const auto value =
      [&](std::initializer_list<const char*> keys) -> Json {  // the first key that the CPU's kind has
    for (const char* key : keys)
      if (const std::string found = cpuinfo_value(cpuinfo, key); !found.empty()) return found;
    return missing_fact(fmt::format("no \"{}\" in /proc/cpuinfo", *keys.begin()));
  };
  const std::vector<fs::path> cpus = online_cpus();
  Json cpu = {{"model", value({"model name", "CPU part", "uarch"})}};
  Json& flags = cpu["flags"] = value({"flags", "Features", "isa"});
  if (!flags.get<std::string>().starts_with("missing: ")) {
    std::istringstream words(flags.get<std::string>());
    flags = Json::array();
    for (std::string word; words >> word;) flags.push_back(word);
  }
  cpu["microcode"] = value({"microcode"});
  cpu.update(topology(cpus));
  cpu["numa_nodes"] = numa_nodes();
  cpu["governor"] = over_cpus(cpus, "cpufreq/scaling_governor", "no cpufreq");
  cpu["frequency_driver"] = over_cpus(cpus, "cpufreq/scaling_driver", "no cpufreq");
  cpu["idle_driver"] = file_fact(fs::path(kCpuDir) / "cpuidle/current_driver", "no cpuidle");
  cpu["smt"] = file_fact(fs::path(kCpuDir) / "smt/control", "the kernel shows no SMT control");
  cpu["max_mhz"] = max_mhz(cpus);
  cpu["isolated"] = file_fact(fs::path(kCpuDir) / "isolated");
  if (cpu["isolated"].get<std::string>().empty()) cpu["isolated"] = "none";
  cpu["mitigations"] = mitigations();
  return cpu;
}

// Heuristics in the order of systemd-detect-virt; a container that hides itself is taken for none.
Json container_environment() {
  std::error_code error;
  if (const std::string manager = read_small("/run/systemd/container"); !manager.empty()) return manager;
  std::istringstream variables(read_small("/proc/1/environ"));
  constexpr std::string_view kKey = "container=";
  for (std::string variable; std::getline(variables, variable, '\0');)
    if (variable.starts_with(kKey)) return variable.substr(kKey.size());
  if (fs::exists("/run/.containerenv", error)) return "podman";
  if (fs::exists("/.dockerenv", error)) return "docker";
  const std::string cgroup = read_small("/proc/1/cgroup");
  for (const char* manager : {"kubepods", "docker", "containerd", "lxc"})
    if (cgroup.find(manager) != std::string::npos) return manager;
  return "none";
}

// "none", or what is known of the hypervisor. DMI's vendor names the product; its serial numbers are not
// read.
Json virtual_machine_environment() {
  const std::string vendor = read_small("/sys/class/dmi/id/sys_vendor");
  if (hypervisor_flag(cpuinfo_value(read_small("/proc/cpuinfo"), "flags"))) {
    std::string signature = hypervisor_signature();
    if (signature.empty()) signature = "unnamed hypervisor";
    return vendor.empty() ? signature : signature + ", " + vendor;
  }
  if (const std::string type = read_small("/sys/hypervisor/type"); !type.empty()) return type;
  for (const char* product :
       {"QEMU", "Amazon EC2", "Google", "VMware", "Xen", "innotek", "Alibaba", "OpenStack"})
    if (vendor.find(product) != std::string::npos) return vendor;
  return "none";
}

}  // namespace fsbl
