// Fuzz target: foreign certificates and ids must never crash, and an accepted id must mean exactly its text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "harness/identity/internal.h"

namespace {

// The bytes as one PEM block, so that the fuzzer reaches the certificate parser without inventing base64.
std::string as_pem(std::string_view der) {
  std::string base64(4 * ((der.size() + 2) / 3) + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                  reinterpret_cast<const unsigned char*>(der.data()), static_cast<int>(der.size()));
  base64.pop_back();
  std::string pem = "-----BEGIN CERTIFICATE-----\n";
  for (size_t at = 0; at < base64.size(); at += 64) pem += base64.substr(at, 64) + "\n";
  return pem + "-----END CERTIFICATE-----\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto id = fsbl::parse_spiffe_id(text); id && id->text() != text) abort();
  for (const auto& pem : {std::string(text), as_pem(text)})
    if (const auto id = fsbl::check_svid_rules(pem); id && fsbl::parse_spiffe_id(id->text()) != *id) abort();
  return 0;
}
