#include "harness/run/placement.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace fsbl {

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t* set = CPU_ALLOC(8192);  // more than a cpu_set_t holds: large hosts
  const size_t size = CPU_ALLOC_SIZE(8192);
  if (set && sched_getaffinity(0, size, set) == 0)
    for (int cpu = 0; cpu < 8192; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size, set)) cpus.push_back(cpu);
  CPU_FREE(set);
  return cpus;
}

Expected<> settle_placement(PlacementConfig& placement, const std::vector<int>& allowed) {
  if (allowed.empty()) return {};  // unknown: pinning itself will tell
  const auto missing = [&](const std::vector<int>& cpus) {
    return std::find_if(cpus.begin(), cpus.end(), [&](int cpu) { return std::find(allowed.begin(), allowed.end(), cpu) == allowed.end(); });
  };
  const PlacementConfig preset;
  const bool chosen = placement.client != preset.client || placement.server != preset.server || !placement.tunnel.empty();
  if (!chosen && (missing(placement.client) != placement.client.end() || missing(placement.server) != placement.server.end())) {
    placement.client = {allowed[0]};
    placement.server = {allowed[std::min<size_t>(1, allowed.size() - 1)]};
    return {};
  }
  const std::pair<const char*, const std::vector<int>*> keys[] = {
      {"client", &placement.client}, {"server", &placement.server}, {"tunnel", &placement.tunnel}};
  for (const auto& [key, cpus] : keys)
    if (const auto cpu = missing(*cpus); cpu != cpus->end())
      return bad_input(fmt::format("placement.{}", key), fmt::format("CPU {}: no such CPU, or not allowed to this process", *cpu),
                       fmt::format("use some of its {} CPUs: {}{}", allowed.size(),
                                   fmt::join(allowed.begin(), allowed.begin() + std::min<ptrdiff_t>(16, std::ssize(allowed)), " "),
                                   allowed.size() > 16 ? " ..." : ""));
  return {};
}

}  // namespace fsbl
