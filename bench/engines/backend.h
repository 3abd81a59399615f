// What fsbl-bench-engines times: something that seals and opens a burst of records. All see the same memory: one
// plaintext for every record of a burst, as a worker's load has it, with the content type behind it.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/record/aead.h"

namespace fsbl::bench {

class Backend {
 public:
  virtual ~Backend() = default;
  // A burst of at most Aead::kBurst records, all of one use. False: one of them failed.
  virtual bool seal(std::span<RecordJob> jobs) = 0;
  virtual bool open(std::span<RecordJob> jobs) = 0;
  virtual bool is_cipher() const { return true; }   // false: nothing to compare with OpenSSL, nothing to open
};

struct BackendKind {
  std::string name;   // "cryptodev:crypto_aesni_gcm"
  std::vector<Cipher> ciphers;
  // A reason why not is no error of the benchmark's: what a host lacks is said and left out.
  Expected<std::unique_ptr<Backend>> (*make)(const std::string& name, Cipher cipher, std::span<const std::byte> key);
};

// openssl-evp, cryptodev:*, copy; and ipsec_mb where it was built in.
std::vector<BackendKind> backend_kinds();
std::vector<BackendKind> ipsec_mb_kinds();

inline constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::aes_256_gcm, Cipher::chacha20_poly1305};

}  // namespace fsbl::bench
