// What affects speed on this host, gathered once per run and host (METHOD.md, DESIGN.md "testbed.hosts").
#pragma once
#include "harness/core/error.h"
#include "harness/core/json.h"

namespace fsbl {

// {cpu {model, flags[], microcode, cores, threads_per_core, sockets, numa_nodes, governor, smt, max_mhz, mitigations{}},
//  memory_bytes, kernel {release, version, cmdline_digest, preempt}, clocksource, container, virtual_machine,
//  boot_id, os, libraries {openssl, glibc, libnl, ...}, sysctls {net.core.rmem_max, ...}, irq_affinity {...},
//  link {name, driver, mtu, speed_mbps?, offloads{}, queues}, clock_sync}
// Host names, MAC addresses and serial numbers never appear. A fact that can't be read is "missing: reason".
Json environment(const std::string& link);
// The part that affects speed (not boot_id, not clock_sync), as canonical JSON: what environment_digest is over.
std::string speed_relevant(const Json& environment);

}  // namespace fsbl
