#include "bench/engines/backend.h"

#include <cstring>

#include "transports/record/aead_module.h"
#include "transports/record/evp_aead.h"

namespace fsbl::bench {
namespace {

constexpr std::string_view kCryptodev = "cryptodev:";

// Any Aead, through the interface that the record layer uses.
class AeadBackend final : public Backend {
 public:
  static Expected<std::unique_ptr<Backend>> make(std::unique_ptr<AeadDevice> device, std::span<const std::byte> key) {
    FSBL_ASSIGN(auto queue, device->make_queue());
    std::unique_ptr<AeadBackend> backend(new AeadBackend(std::move(device), std::move(queue)));
    FSBL_ASSIGN(backend->seal_key_, backend->queue_->add_key(key, KeyUse::seal));
    FSBL_ASSIGN(backend->open_key_, backend->queue_->add_key(key, KeyUse::open));
    return std::unique_ptr<Backend>(std::move(backend));
  }
  ~AeadBackend() override {
    queue_->drop_key(seal_key_);
    queue_->drop_key(open_key_);
  }
  bool seal(std::span<RecordJob> jobs) override { return run(jobs, seal_key_); }
  bool open(std::span<RecordJob> jobs) override { return run(jobs, open_key_); }

 private:
  AeadBackend(std::unique_ptr<AeadDevice> device, std::unique_ptr<Aead> queue)
      : device_(std::move(device)), queue_(std::move(queue)) {}
  bool run(std::span<RecordJob> jobs, KeyHandle key) {
    for (RecordJob& job : jobs) job.key = key;
    queue_->start(jobs);
    queue_->finish(jobs);
    bool ok = true;
    for (const RecordJob& job : jobs) ok &= job.state == JobState::done;
    return ok;
  }

  std::unique_ptr<AeadDevice> device_;
  std::unique_ptr<Aead> queue_;
  KeyHandle seal_key_ = 0, open_key_ = 0;
};

// The floor: what it costs to move the bytes.
class CopyBackend final : public Backend {
 public:
  bool seal(std::span<RecordJob> jobs) override {
    for (RecordJob& job : jobs) std::memcpy(job.record + kRecordHeaderBytes, job.plain, job.bytes + 1);
    return true;
  }
  bool open(std::span<RecordJob>) override { return false; }
  bool is_cipher() const override { return false; }
};

Expected<std::unique_ptr<Backend>> make_evp(const std::string&, Cipher cipher, std::span<const std::byte> key) {
  AeadConfig config;
  config.cipher = cipher;
  FSBL_ASSIGN(auto device, make_evp_device(config));
  return AeadBackend::make(std::move(device), key);
}

Expected<std::unique_ptr<Backend>> make_cryptodev(const std::string& name, Cipher cipher,
                                                  std::span<const std::byte> key) {
  AeadConfig config;
  config.cipher = cipher;
  config.device = name.substr(kCryptodev.size());
  FSBL_ASSIGN(auto device, open_module_device("cryptodev", config));
  return AeadBackend::make(std::move(device), key);
}

Expected<std::unique_ptr<Backend>> make_copy(const std::string&, Cipher, std::span<const std::byte>) {
  return std::make_unique<CopyBackend>();
}

}  // namespace

std::vector<BackendKind> backend_kinds() {
  const std::vector<Cipher> all(std::begin(kCiphers), std::end(kCiphers));
  const std::vector<Cipher> gcm = {Cipher::aes_128_gcm, Cipher::aes_256_gcm};
  std::vector<BackendKind> kinds = {
      {"openssl-evp", all, make_evp},
      {"cryptodev:crypto_aesni_gcm", gcm, make_cryptodev},
      {"cryptodev:crypto_chacha20_poly1305", {Cipher::chacha20_poly1305}, make_cryptodev},
      {"cryptodev:crypto_aesni_mb", all, make_cryptodev},
      {"cryptodev:crypto_openssl", gcm, make_cryptodev},
      {"copy", {Cipher::aes_256_gcm}, make_copy}   // once: it has no cipher,
  };
  for (BackendKind& kind : ipsec_mb_kinds()) kinds.push_back(std::move(kind));
  return kinds;
}

}  // namespace fsbl::bench
