// What a scenario's `crypto.device` asks for, before anything of DPDK is touched.
//
//   auto                                    the fastest software driver of the cipher
//   crypto_aesni_gcm[,ARG=VALUE...]         a software driver by DPDK's name, with DPDK's own arguments
//   crypto_scheduler                        two devices of the `auto` driver behind the scheduler, in order
//   0000:3d:00.0[,ARG=VALUE...]             a PCI device; the domain may be left out
//   crypto_qat | crypto_ccp | crypto_mlx5   the first PCI devices on this host that such a driver serves
//
// fsbl_bounce=1 among the arguments is ours: records are copied through DPDK's own memory, as for a device with DMA.
#pragma once
#include <string>
#include <vector>

#include "transports/record/aead.h"

namespace fsbl {

struct DeviceRequest {
  std::string text;                 // as it was asked for
  std::string driver;               // "crypto_aesni_gcm"; empty: a PCI address, and DPDK finds the driver
  std::string args;                 // for DPDK, without the driver, joined by commas
  std::vector<std::string> pci;     // full addresses to allow; empty: a software device
  std::vector<std::string> workers; // crypto_scheduler: the instances to make before it
  bool bounce = false;

  bool is_pci() const { return !pci.empty(); }
  bool has_arg(const std::string& name) const;
};

// The driver that `auto` means.
std::string auto_driver(Cipher cipher);
std::string cipher_name(Cipher cipher);

// `instance` makes the names of devices unique in the process. Reads /sys for PCI. Errors: what isn't a device, what
// does not encrypt, and hardware that this host lacks.
Expected<DeviceRequest> parse_request(const AeadConfig& config, unsigned instance);

}  // namespace fsbl
