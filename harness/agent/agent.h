// fsbl-agent: holds one host's privilege. It configures the link, sets up its side of a transport, starts the
// worker, reads the host's probes at the window's two ends, and proves the path. It carries no load.
//
// Requests, in this order for each round (the controller drives both sides in step):
//   hello {protocol}                          → {protocol, version, commit, binary_sha256}
//   host {role, link, addresses, testbed}     → {link, offloads, sysctls, environment}            once a testbed
//   prepare {config}                          → {offer}                        public keys and requests only
//   up {peer_offer, grant}                    → {}
//   establish {}                              → {attachment}                   tunnel handshake done
//   worker {pattern_seed, canary, threads}    → {ports, threads}               a fresh, unprivileged process
//   connect {ports, timeout_ns}               → {planned, established, handshakes, refusals, failures}
//   measure {timeout_ns}                      → {reading, layers, cpu, perf, missing, interface, capture}
//   down {}                                   → {}
// End of file on the channel at any time: everything is torn down and the process ends.
#pragma once
#include "harness/core/error.h"

namespace fsbl {

Expected<> serve_agent(int read_fd, int write_fd);

}  // namespace fsbl
