#include "harness/testbed/link_ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "harness/core/fd.h"
#include "harness/testbed/link.h"

namespace fsbl {
namespace {

// One SIOCETHTOOL request; 0 or errno. `argument` is the ethtool struct, its first word the command.
int ethtool(const std::string& link, void* argument) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  if (link.size() >= IFNAMSIZ) return ENODEV;
  ifreq request{};
  std::memcpy(request.ifr_name, link.data(), link.size());
  request.ifr_data = static_cast<char*>(argument);
  return ioctl(socket.get(), SIOCETHTOOL, &request) == 0 ? 0 : errno;
}

struct Offload {
  const char* name;
  uint32_t get, set;
};
// In the order in which they are set: segmentation depends on transmit checksums.
constexpr Offload kTxChecksum{"tx_checksum", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM};
constexpr Offload kRxChecksum{"rx_checksum", ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM};
constexpr Offload kTso{"tso", ETHTOOL_GTSO, ETHTOOL_STSO};
constexpr Offload kGso{"gso", ETHTOOL_GGSO, ETHTOOL_SGSO};
constexpr Offload kGro{"gro", ETHTOOL_GGRO, ETHTOOL_SGRO};
constexpr const Offload* kOffloads[] = {&kTxChecksum, &kRxChecksum, &kTso, &kGso, &kGro};

}  // namespace

Expected<std::string> ethtool_driver(const std::string& link) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  const int error_number = ethtool(link, &info);
  if (error_number == EOPNOTSUPP) return std::string();
  if (error_number != 0) return fault_errno("read driver of " + link, error_number);
  return std::string(info.driver, strnlen(info.driver, sizeof info.driver));
}

Expected<Json> read_offloads(const std::string& link) {
  Json state = Json::object();
  for (const Offload* offload : kOffloads) {
    ethtool_value value{offload->get, 0};
    if (const int error_number = ethtool(link, &value))
      return fault_errno(std::string("read ") + offload->name + " of " + link, error_number);
    state[offload->name] = value.data != 0;
  }
  return state;
}

Expected<Json> set_offloads(const std::string& link, const OffloadConfig& wanted) {
  const std::pair<Offload, std::optional<bool>> requests[] = {
      {kTxChecksum, wanted.checksum}, {kRxChecksum, wanted.checksum}, {kTso, wanted.tso}, {kGro, wanted.gro}};
  FSBL_ASSIGN(const Json before, read_offloads(link));
  for (const auto& [offload, on] : requests) {
    if (!on || before[offload.name] == *on) continue;
    ethtool_value value{offload.set, *on ? 1u : 0u};
    if (const int error_number = ethtool(link, &value))
      return fault_errno(std::string("set ") + offload.name + (*on ? " on" : " off") + " at " + link,
                         error_number, "leave this offload as the device has it");
  }
  // The kernel says yes and then keeps what the device or another feature forbids: believe only the device.
  FSBL_ASSIGN(Json after, read_offloads(link));
  for (const auto& [offload, on] : requests) {
    if (!on || after[offload.name] == *on) continue;
    const bool needs_checksum = offload.set == kTso.set && *on && after[kTxChecksum.name] == false;
    return fault(
        std::string("set ") + offload.name + (*on ? " on" : " off") + " at " + link,
        needs_checksum ? "the device ignored it: tso needs checksum offload" : "the device ignored it",
        "leave this offload as the device has it");
  }
  return after;
}

}  // namespace fsbl
