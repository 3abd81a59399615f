// Network devices of one namespace, through rtnetlink (libnl-route 3) and SIOCETHTOOL. Every call acts on the
// network namespace that the calling thread is in. Errors name the device and the errno.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/scenario/model.h"

namespace fsbl {

struct LinkInfo {
  std::string name, driver;  // driver by ETHTOOL_GDRVINFO, e.g. "veth"; empty when there is none (lo)
  int ifindex = 0;
  uint32_t mtu = 0;
  bool up = false;
};
Expected<LinkInfo> find_link(const std::string& name);
// Adds an address ("198.18.0.1/30" or "2001:2:0:1::1/126", nodad). One that is there already is no error.
Expected<> add_address(const std::string& link, const std::string& address_with_prefix);
// Reads back: a device that takes another MTU than asked is an error.
Expected<> set_mtu(const std::string& link, uint32_t mtu);
Expected<> set_up(const std::string& link);  // admin up, then waits (bounded) for carrier
// Sets what is given; afterwards reads back what the device really has: {"tso": true, "gro": ..., "gso": ...,
// "tx_checksum": ..., "rx_checksum": ...}. A request the device ignores is an error naming it. Offloads that
// go along (tso goes off with checksums) show in what is returned.
Expected<Json> set_offloads(const std::string& link, const OffloadConfig& wanted);
Expected<Json> read_offloads(const std::string& link);
// Interface counters from IFLA_STATS64: rx_bytes tx_bytes rx_packets tx_packets rx_dropped tx_dropped
// rx_errors ...
Expected<std::vector<std::pair<std::string, uint64_t>>> link_counters(const std::string& link);
// Sets sysctls of this namespace below /proc/sys ("net.ipv4.tcp_rmem"); returns what was read back.
// Anything but net.* is refused (it would not be per-namespace). Names as in sysctl(8): for a device with
// dots in its name write "net/ipv4/conf/eth0.1/rp_filter" or "net.ipv4.conf.eth0/1.rp_filter". With one name
// refused none is set.
Expected<std::map<std::string, std::string>> set_sysctls(const std::map<std::string, std::string>& values);

}  // namespace fsbl
