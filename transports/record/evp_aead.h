// Cipher back end over OpenSSL's EVP: the same ciphers that OpenSSL's own record layer uses, without that layer. Lets
// the cost of the record layer and the cost of the cipher be told apart.
#pragma once
#include "transports/record/aead.h"

namespace fsbl {

Expected<std::unique_ptr<AeadDevice>> make_evp_device(const AeadConfig& config);

}  // namespace fsbl
