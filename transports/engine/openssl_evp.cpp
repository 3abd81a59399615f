// Record engine `openssl-evp`: fsbl's own record layer over OpenSSL's ciphers. Beside `openssl` it shows what the
// library's record layer costs; beside `cryptodev`, what the cipher costs.
#include "harness/transport/transport.h"
#include "transports/record/evp_aead.h"
#include "transports/record/record_layer.h"
#include "transports/record/make_engines.h"

namespace fsbl {

extern const EngineDescriptor engine_openssl_evp;
const EngineDescriptor engine_openssl_evp = {
    .name = "openssl-evp",
    .summary = "records by fsbl's record layer over OpenSSL's ciphers, on the worker's CPU",
    .device_class = "cpu",
    .needs_secrets = true,
    .usable = [](const Host&) -> Expected<> { return {}; },
    .make = [](const EngineConfig& config) { return make_aead_engines(config, make_evp_device); },
};

}  // namespace fsbl
