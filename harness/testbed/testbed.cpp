#include "harness/testbed/testbed.h"

#include <net/if.h>
#include <netlink/route/link/veth.h>

#include "harness/testbed/link.h"
#include "harness/testbed/netlink.h"
#include "harness/testbed/netns.h"

namespace fsbl {
namespace {

constexpr const char* kLink = "eth0";
// Every testbed has the same addresses: its namespaces are joined to nothing else.
constexpr const char* kClient4 = "198.18.0.1";
constexpr const char* kServer4 = "198.18.0.2";
constexpr const char* kClient6 = "2001:2::1";
constexpr const char* kServer6 = "2001:2::2";

// Makes the veth pair from inside one of its namespaces, so that no end is ever seen in the host's. The near
// end is born up; the far one can't be (ENOTCONN: it is made before it has a peer).
Expected<> join_with_veth(int peer_namespace) {
  const std::string what = "make veth pair eth0";
  const RouteLink near(rtnl_link_veth_alloc());
  if (!near) return fault_errno(what, ENOMEM);
  const RouteLink far(rtnl_link_veth_get_peer(near.get()));
  rtnl_link_set_name(near.get(), kLink);
  rtnl_link_set_flags(near.get(), IFF_UP);
  rtnl_link_set_name(far.get(), kLink);
  rtnl_link_set_ns_fd(far.get(), peer_namespace);
  FSBL_ASSIGN(NetlinkMessage message, build_message(what, [&](nl_msg** built) {
                return rtnl_link_build_add_request(near.get(), NLM_F_CREATE | NLM_F_EXCL, built);
              }));
  FSBL_ASSIGN(const RouteSocket socket, RouteSocket::open());
  return socket.request(std::move(message), what);
}

}  // namespace

Expected<NetnsTestbed> NetnsTestbed::create(const TestbedConfig& config) {
  if (config.kind != "netns") return bad_input("make testbed", "kind '" + config.kind + "' is not 'netns'");
  NetnsTestbed made;
  made.client_ = {Role::client, kLink, kClient4, kServer4, kClient6, kServer6};
  made.server_ = {Role::server, kLink, kServer4, kClient4, kServer6, kClient6};
  FSBL_ASSIGN(made.client_ns_, make_network_namespace());
  FSBL_ASSIGN(made.server_ns_, make_network_namespace());
  const int client = made.client_ns_.get(), server = made.server_ns_.get();
  FSBL_TRY(in_network_namespace(client, [&] { return join_with_veth(server); }));
  // Both ends have carrier from here on, so the hosts can be configured in any order.
  for (const int end : {server, client}) FSBL_TRY(in_network_namespace(end, [] { return set_up(kLink); }));
  return made;
}

const TestbedHost& NetnsTestbed::host(Role role) const {
  return role == Role::client ? client_ : server_;
}

std::vector<int> NetnsTestbed::namespace_fds(Role role) const {
  return {(role == Role::client ? client_ns_ : server_ns_).get()};
}

}  // namespace fsbl
