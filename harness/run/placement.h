// Which CPU serves which role, on the CPUs that this process may use.
#pragma once
#include <vector>

#include "harness/core/error.h"
#include "harness/scenario/model.h"

namespace fsbl {

// CPUs of this process's affinity mask, ascending.
std::vector<int> allowed_cpus();

// Checks a placement before anything is measured. The default (client on CPU 0, server on CPU 1) gives way to the
// first CPUs allowed where it can't be had (a container's cpuset, a one-core machine); one that a scenario chose does
// not: bad_input naming the key.
Expected<> settle_placement(PlacementConfig& placement, const std::vector<int>& allowed);

}  // namespace fsbl
