// Network namespaces held by descriptors alone: nothing in /run/netns, nothing to clean up.
//
// A namespace belongs to a thread, so whatever must happen in another one happens on a short-lived thread of
// its own. However that ends, the caller's thread never left its namespace and nothing has to be switched
// back.
#pragma once
#include <functional>

#include "harness/core/error.h"
#include "harness/core/fd.h"

namespace fsbl {

// A new network namespace with loopback up and IPv6 kept quiet (no router solicitations, no
// autoconfiguration, no duplicate address detection) on links made in it later. Forwarding is off. The
// descriptor is close-on-exec.
Expected<UniqueFd> make_network_namespace();

// Runs `body` in the namespace and returns what it returned. Sockets that it opened stay in that namespace.
Expected<> in_network_namespace(int namespace_fd, const std::function<Expected<>()>& body);

}  // namespace fsbl
