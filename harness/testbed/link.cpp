#include "harness/testbed/link.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netlink/addr.h>
#include <netlink/route/addr.h>

#include <cerrno>
#include <charconv>

#include "harness/core/clock.h"
#include "harness/testbed/link_ethtool.h"
#include "harness/testbed/netlink.h"

namespace fsbl {
namespace {

constexpr Nanos kCarrierTimeout = 5'000'000'000;

struct FreeAddress {
  void operator()(nl_addr* address) const { nl_addr_put(address); }
  void operator()(rtnl_addr* address) const { rtnl_addr_put(address); }
};

using AddressPointer = std::unique_ptr<nl_addr, FreeAddress>;

// "198.18.0.1/30" or null. Stricter than nl_addr_parse(), which takes "198.18.0.1/30x", "any" and MAC
// addresses.
AddressPointer parse_address(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string host = text.substr(0, slash);
  unsigned char bytes[16];
  const int family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (inet_pton(family, host.c_str(), bytes) != 1) return nullptr;
  const size_t size = family == AF_INET ? 4 : 16;
  unsigned prefix = 0;
  const char* begin = text.data() + std::min(slash + 1, text.size());
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, prefix);
  if (error != std::errc() || stop != end || prefix > 8 * size) return nullptr;
  AddressPointer address(nl_addr_build(family, bytes, size));
  if (address) nl_addr_set_prefixlen(address.get(), static_cast<int>(prefix));
  return address;
}

// Changes one device: `edit` fills in what shall be different.
template <class Edit>
Expected<> change_link(const std::string& name, const std::string& what, Edit edit) {
  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  FSBL_ASSIGN(const RouteLink present, socket.link(name));
  const RouteLink wanted(rtnl_link_alloc());
  if (!wanted) return fault_errno(what, ENOMEM);
  edit(wanted.get());
  FSBL_ASSIGN(NetlinkMessage message, build_message(what, [&](nl_msg** built) {
                return rtnl_link_build_change_request(present.get(), wanted.get(), 0, built);
              }));
  return socket.request(std::move(message), what);
}

}  // namespace

Expected<LinkInfo> find_link(const std::string& name) {
  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  FSBL_ASSIGN(const RouteLink link, socket.link(name));
  LinkInfo info;
  info.name = name;
  info.ifindex = rtnl_link_get_ifindex(link.get());
  info.mtu = rtnl_link_get_mtu(link.get());
  info.up = (rtnl_link_get_flags(link.get()) & IFF_UP) != 0;
  FSBL_ASSIGN(info.driver, ethtool_driver(name));
  return info;
}

Expected<> add_address(const std::string& link, const std::string& address_with_prefix) {
  const std::string what = fmt::format("add address {} to {}", address_with_prefix, link);
  const AddressPointer local = parse_address(address_with_prefix);
  if (!local) return bad_input(what, "not an IP address with prefix length");

  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  FSBL_ASSIGN(const RouteLink device, socket.link(link));
  const std::unique_ptr<rtnl_addr, FreeAddress> address(rtnl_addr_alloc());
  if (!address || rtnl_addr_set_local(address.get(), local.get()) < 0) return fault_errno(what, ENOMEM);
  rtnl_addr_set_ifindex(address.get(), rtnl_link_get_ifindex(device.get()));
  // Nobody else is on this link: duplicate address detection would only delay the first packet.
  if (nl_addr_get_family(local.get()) == AF_INET6) rtnl_addr_set_flags(address.get(), IFA_F_NODAD);
  FSBL_ASSIGN(NetlinkMessage message, build_message(what, [&](nl_msg** built) {
                return rtnl_addr_build_add_request(address.get(), NLM_F_CREATE | NLM_F_REPLACE, built);
              }));
  return socket.request(std::move(message), what);
}

Expected<> set_mtu(const std::string& link, uint32_t mtu) {
  const std::string what = fmt::format("set MTU {} on {}", mtu, link);
  FSBL_TRY(change_link(link, what, [&](rtnl_link* wanted) { rtnl_link_set_mtu(wanted, mtu); }));
  FSBL_ASSIGN(const LinkInfo now, find_link(link));
  if (now.mtu != mtu)
    return fault(what, fmt::format("the device took {}", now.mtu), "use an MTU it supports");
  return {};
}

Expected<> set_up(const std::string& link) {
  const std::string what = "bring up " + link;
  FSBL_TRY(change_link(link, what, [](rtnl_link* wanted) { rtnl_link_set_flags(wanted, IFF_UP); }));
  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  const Nanos deadline = mono_now_ns() + kCarrierTimeout;
  for (;;) {
    FSBL_ASSIGN(const RouteLink now, socket.link(link));
    // Not the carrier itself: IFF_RUNNING comes after the queues were activated, before that packets are
    // dropped.
    if (rtnl_link_get_flags(now.get()) & IFF_RUNNING) return {};
    if (mono_now_ns() >= deadline)
      return fault(what, fmt::format("no carrier after {} s", kCarrierTimeout / 1'000'000'000),
                   "bring up the other end, check the cable");
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
}

Expected<std::vector<std::pair<std::string, uint64_t>>> link_counters(const std::string& link) {
  static constexpr std::pair<const char*, rtnl_link_stat_id_t> kCounters[] = {
      {"rx_bytes", RTNL_LINK_RX_BYTES},
      {"tx_bytes", RTNL_LINK_TX_BYTES},
      {"rx_packets", RTNL_LINK_RX_PACKETS},
      {"tx_packets", RTNL_LINK_TX_PACKETS},
      {"rx_dropped", RTNL_LINK_RX_DROPPED},
      {"tx_dropped", RTNL_LINK_TX_DROPPED},
      {"rx_errors", RTNL_LINK_RX_ERRORS},
      {"tx_errors", RTNL_LINK_TX_ERRORS},
      {"rx_missed_errors", RTNL_LINK_RX_MISSED_ERR},
      {"rx_fifo_errors", RTNL_LINK_RX_FIFO_ERR},
      {"tx_fifo_errors", RTNL_LINK_TX_FIFO_ERR},
      {"tx_carrier_errors", RTNL_LINK_TX_CARRIER_ERR},
  };
  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  FSBL_ASSIGN(const RouteLink device, socket.link(link));
  std::vector<std::pair<std::string, uint64_t>> counters;
  for (const auto& [name, id] : kCounters) counters.emplace_back(name, rtnl_link_get_stat(device.get(), id));
  return counters;
}

}  // namespace fsbl
