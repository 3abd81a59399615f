// What only the ethtool ioctl tells of a device. Internal to this layer; for users there is link.h.
#pragma once
#include <string>

#include "harness/core/error.h"

namespace fsbl {

// "veth", "mlx5_core"; empty for devices that name no driver (lo).
Expected<std::string> ethtool_driver(const std::string& link);

}  // namespace fsbl
