// The network device of a run: driver, speed, queues, and where its interrupts go.
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <new>

#include "harness/core/fd.h"
#include "harness/core/file.h"
#include "harness/testbed/environment_parts.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace fs = std::filesystem;
namespace {

// One SIOCETHTOOL query. Not through /sys/class/net: that shows the devices of the namespace which mounted
// /sys, so "eth0" there may be another device.
Expected<> ethtool_query(const std::string& link, void* query) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return fault_errno("ethtool", errno);
  ifreq request{};
  std::memcpy(request.ifr_name, link.data(), std::min<size_t>(link.size(), IFNAMSIZ - 1));
  request.ifr_data = static_cast<char*>(query);
  if (ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return fault_errno("ethtool", errno);
  return {};
}

Json speed_mbps(const std::string& link) {
  // The settings end in three bitmaps; the first query answers minus the words of each, the second fills them
  // in.
  constexpr size_t kMostWords = 127;
  alignas(ethtool_link_settings)
      std::byte room[sizeof(ethtool_link_settings) + 3 * kMostWords * sizeof(uint32_t)]{};
  auto* settings = new (room) ethtool_link_settings{};
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  if (const auto handshake = ethtool_query(link, room); !handshake)
    return missing_fact(handshake.error().why);
  if (settings->link_mode_masks_nwords >= 0)
    return missing_fact("the kernel named no size for the link modes");
  settings->link_mode_masks_nwords = static_cast<__s8>(-settings->link_mode_masks_nwords);
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  if (const auto answer = ethtool_query(link, room); !answer) return missing_fact(answer.error().why);
  if (settings->speed == static_cast<uint32_t>(SPEED_UNKNOWN) || settings->speed == 0)
    return missing_fact("the driver knows no speed");
  return settings->speed;
}

Json queues(const std::string& link) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (const auto answer = ethtool_query(link, &channels); !answer) return missing_fact(answer.error().why);
  return {{"rx", channels.rx_count}, {"tx", channels.tx_count}, {"combined", channels.combined_count}};
}

}  // namespace

Json link_environment(const std::string& link) {
  if (link.empty()) return missing_fact("no link given");
  const auto info = find_link(link);
  if (!info) return missing_fact(info.error().message());
  Json result = {
      {"name", link}, {"driver", info->driver.empty() ? "none" : info->driver}, {"mtu", info->mtu}};
  // veth reports a constant that limits nothing.
  result["speed_mbps"] = info->driver == "veth" ? missing_fact("veth has no line rate") : speed_mbps(link);
  const auto offloads = read_offloads(link);
  result["offloads"] = offloads ? *offloads : missing_fact(offloads.error().message());
  result["queues"] = queues(link);
  return result;
}

// {bus interrupts: how many have which CPU list}: the summary survives renumbering of interrupts.
Json irq_environment(const std::string& link) {
  if (link.empty()) return missing_fact("no link given");
  const auto info = find_link(link);
  if (!info) return missing_fact(info.error().message());
  if (info->driver == "veth") return missing_fact("veth has no interrupts");
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (const auto answer = ethtool_query(link, &driver); !answer) return missing_fact(answer.error().why);
  const std::string bus(driver.bus_info, strnlen(driver.bus_info, sizeof driver.bus_info));
  const fs::path folder = fs::path("/sys/bus/pci/devices") / bus / "msi_irqs";
  if (bus.empty() || bus.find('/') != bus.npos) return missing_fact("the device sits on no bus");
  std::map<std::string, int> interrupts_on;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    ++interrupts_on[read_small(fs::path("/proc/irq") / entry->path().filename() / "smp_affinity_list",
                               "unreadable")];
  if (interrupts_on.empty())
    return missing_fact("no message-signalled interrupts of the device in /sys/bus/pci");
  return {{"interrupts_on_cpus", interrupts_on}};
}

}  // namespace fsbl
