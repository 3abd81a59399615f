// Record engine `cryptodev`: fsbl's own record layer over a DPDK crypto device. DPDK itself is in a module that only
// the worker loads, and only when a scenario asks for this engine.
#include "harness/transport/transport.h"
#include "transports/record/aead_module.h"
#include "transports/record/make_engines.h"

namespace fsbl {

extern const EngineDescriptor engine_cryptodev;
const EngineDescriptor engine_cryptodev = {
    .name = "cryptodev",
    .summary = "records by the DPDK crypto device that crypto.device names, or by a software driver",
    .device_class = "",
    .needs_secrets = true,
    .usable = [](const Host&) -> Expected<> { return module_is_there("cryptodev"); },
    .make =
        [](const EngineConfig& config) {
          return make_aead_engines(config, [](const AeadConfig& aead) { return open_module_device("cryptodev", aead); });
        },
};

}  // namespace fsbl
