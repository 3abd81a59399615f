// This machine, as the commands that use a testbed see it.
#pragma once
#include "harness/transport/transport.h"

namespace fsbl {

// Probes the host. Where namespaces need it (an ordinary user), the process moves into a user namespace first, so
// that what is probed is what a run would have. Call before threads exist.
Host enter_testbed_host();

}  // namespace fsbl
