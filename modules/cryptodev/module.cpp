// What the worker finds in fsbl-cryptodev.so.
#include "fsbl_version.h"
#include "modules/cryptodev/device.h"

extern "C" __attribute__((visibility("default"))) const fsbl::AeadModule fsbl_aead_module;
const fsbl::AeadModule fsbl_aead_module = {FSBL_VERSION " " FSBL_COMMIT, fsbl::CryptoDevice::open};
