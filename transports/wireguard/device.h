// The address of a tunnel's device, by ioctl. Acts on the network namespace that the calling thread is in.
#pragma once
#include <cstdint>
#include <string>

#include "harness/core/error.h"
#include "harness/scenario/model.h"

namespace fsbl::wireguard {

struct InnerAddress {
  IpFamily family = IpFamily::v4;
  std::string text;  // without prefix length
  int prefix_bits = 32;
};

// Sets MTU and address and brings the device up. Errors name the device and the step.
Expected<> configure_device(const std::string& name, uint32_t mtu, const InnerAddress& address);
Expected<int> device_index(const std::string& name);

}  // namespace fsbl::wireguard
