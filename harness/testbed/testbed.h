// A testbed is two hosts, client and server, joined by a link. This is the embedded one: two unnamed network
// namespaces held by descriptors, joined by a veth pair. When the last holder dies, the kernel removes all of
// it.
#pragma once
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/fd.h"
#include "harness/core/process.h"
#include "harness/scenario/model.h"

namespace fsbl {

// One side's view of the link, before the agent configures it.
struct TestbedHost {
  Role role = Role::client;
  std::string link;             // device name inside the host: "eth0"
  std::string address4, peer4;  // from 198.18.0.0/15 (RFC 2544), without prefix; a /30 each
  std::string address6, peer6;  // from 2001:2::/48 (RFC 5180), without prefix; a /126 each
};

class NetnsTestbed {
 public:
  // Needs CAP_SYS_ADMIN and CAP_NET_ADMIN (root, or inside enter_user_namespace()). Loopback and both ends of
  // the link are up, without addresses, so the hosts can be configured in any order. A failure leaves nothing
  // behind.
  static Expected<NetnsTestbed> create(const TestbedConfig& config);
  const TestbedHost& host(Role role) const;
  // Options for spawn() that place a child in the role's network namespace.
  std::vector<int> namespace_fds(Role role) const;

 private:
  UniqueFd client_ns_, server_ns_;
  TestbedHost client_, server_;
};

// Whether this process can make namespaces as it is (root-like), and otherwise whether a user namespace would
// do; tried in short-lived children. `why_none` (may be null) is set for Privilege::none: the reason and the
// fix.
enum class Privilege { enough, through_user_namespace, none };
Privilege testbed_privilege(std::string* why_none);

// Moves the (single-threaded) process into new user, mount and network namespaces in which the invoking user
// is root; files it makes still belong to that user. Loopback is up in the new network. Call before threads
// exist. After an error the process may be half inside: end it (testbed_privilege() tells beforehand whether
// it will work).
Expected<> enter_user_namespace();

}  // namespace fsbl
