// Cipher back ends for TLS 1.3 records (RFC 8446, 5.2): a library or a device that seals and opens records in bursts.
// transports/record/record_layer.h makes a record engine of any of them; a new back end is one AeadDevice.
//
// An AeadDevice belongs to the process, an Aead (its queue) to one load thread. Hot path (start, finish): no
// allocation, lock, log or exception.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"

namespace fsbl {

enum class Cipher : uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305 };
inline constexpr size_t key_bytes(Cipher cipher) { return cipher == Cipher::aes_128_gcm ? 16 : 32; }

inline constexpr size_t kRecordHeaderBytes = 5;      // type, legacy version, length: the additional data
inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kNonceBytes = 12;
inline constexpr size_t kMaxPlainBytes = 16384;      // of one record, without the inner content type
inline constexpr size_t kMaxSealedBytes = kMaxPlainBytes + 256;   // a record's length field may say so much

enum class KeyUse : uint8_t { seal, open };
using KeyHandle = uint32_t;

enum class JobState : uint8_t { idle, started, done, failed };

// One record. Everything it points to is lent from start() until its state is done or failed.
struct RecordJob {
  KeyHandle key = 0;                  // its use says whether this seals or opens
  JobState state = JobState::idle;
  uint8_t type = 0;                   // seal: inner content type, appended to the plaintext
  uint32_t bytes = 0;                 // seal: of `plain`, 0..kMaxPlainBytes. open: behind the header, tag included
                                      //   (kTagBytes + 1 .. kMaxSealedBytes)
  const std::byte* plain = nullptr;   // seal: read only, apart from `record`
  std::byte* record = nullptr;        // begins with the filled header. seal: bytes + 1 + kTagBytes are written behind
                                      //   it. open: decrypted in place; bytes - kTagBytes of plaintext behind it. A
                                      //   failed open leaves the ciphertext as it came or decrypted, nothing else
  std::array<std::byte, kNonceBytes> nonce{};
};

// What stands behind the words in a table. Witnessed by asking the device, not by configuration.
struct AeadFacts {
  std::string device;        // "crypto_aesni_gcm0"
  std::string driver;        // "crypto_aesni_gcm"
  std::string version;       // "DPDK 22.11.11", "OpenSSL 3.0.15"
  std::string device_class;  // "cpu", "accelerator"
  std::vector<std::string> features;
};

class Aead {
 public:
  static constexpr size_t kBurst = 32;   // jobs of one start()

  virtual ~Aead() = default;

  // Not on the hot path: may allocate. At most 65 536 keys live at once; `key` has key_bytes() of its cipher.
  virtual Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) = 0;
  virtual void drop_key(KeyHandle key) noexcept = 0;   // no job with it is under way

  // Starts at most kBurst jobs, seals and opens in any mixture. The caller has at most 2 * kBurst under way.
  virtual void start(std::span<RecordJob> jobs) noexcept = 0;
  // Returns when all of `jobs`, started before, are done or failed; other jobs may end meanwhile. A device that does
  // not answer fails its jobs after a second. A failed open (the tag is wrong) is `failed`, and so is a broken device.
  virtual void finish(std::span<RecordJob> jobs) noexcept = 0;

  // The back end's own count of what it processed: {name, value} as the device names them ("dequeued_count").
  virtual std::vector<std::pair<std::string, uint64_t>> counters() const { return {}; }
  // Which of counters() counts records processed without error; empty: none does.
  virtual std::string record_counter() const { return {}; }
};

struct AeadConfig {
  Cipher cipher = Cipher::aes_256_gcm;
  std::string device = "auto";   // crypto.device of the scenario
  uint32_t queues = 1;           // load threads that will ask for one
  std::string module;            // where the shared object is; empty: beside this program
};

class AeadDevice {
 public:
  virtual ~AeadDevice() = default;
  virtual const AeadFacts& facts() const = 0;
  // For the calling thread, which alone uses it; at most `queues` times. Thread-safe. The device outlives its queues.
  virtual Expected<std::unique_ptr<Aead>> make_queue() = 0;
};

// What a module (a shared object beside the worker, modules/<name>) exports as `extern "C" fsbl_aead_module`.
struct AeadModule {
  const char* build;   // FSBL_VERSION " " FSBL_COMMIT: a module of another build is refused
  Expected<std::unique_ptr<AeadDevice>> (*open)(const AeadConfig&);
};

// Known answers, and random records against OpenSSL's EVP in both directions with tampering; 0 to 16 384 bytes. A back
// end that fails is not used: the error says on what.
Expected<> check_aead(Aead& aead, Cipher cipher);

}  // namespace fsbl
