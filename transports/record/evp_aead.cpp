#include "transports/record/evp_aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "harness/identity/openssl.h"

namespace fsbl {
namespace {

using CipherCtxPtr = std::unique_ptr<EVP_CIPHER_CTX, OpensslFree<EVP_CIPHER_CTX_free>>;

const EVP_CIPHER* evp_cipher(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes_128_gcm: return EVP_aes_128_gcm();
    case Cipher::aes_256_gcm: return EVP_aes_256_gcm();
    case Cipher::chacha20_poly1305: return EVP_chacha20_poly1305();
  }
  return nullptr;
}

unsigned char* bytes(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* bytes(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

class EvpAead final : public Aead {
 public:
  explicit EvpAead(Cipher cipher) : cipher_(cipher) {}

  Expected<KeyHandle> add_key(std::span<const std::byte> key, KeyUse use) override {
    CipherCtxPtr ctx(EVP_CIPHER_CTX_new());
    const int seals = use == KeyUse::seal;
    if (key.size() != key_bytes(cipher_) || !ctx ||
        EVP_CipherInit_ex(ctx.get(), evp_cipher(cipher_), nullptr, bytes(key.data()), nullptr, seals) != 1)
      return fault("add a key to openssl-evp", openssl_reason());
    if (!free_.empty()) {
      const KeyHandle handle = free_.back();
      free_.pop_back();
      keys_[handle] = {std::move(ctx), use};
      return handle;
    }
    keys_.push_back({std::move(ctx), use});
    free_.reserve(keys_.size());
    return static_cast<KeyHandle>(keys_.size() - 1);
  }
  void drop_key(KeyHandle key) noexcept override {
    keys_[key].ctx.reset();
    free_.push_back(key);
  }

  void start(std::span<RecordJob> jobs) noexcept override {
    for (RecordJob& job : jobs) {
      const Key& key = keys_[job.key];
      const bool ok = key.use == KeyUse::seal ? seal(key.ctx.get(), job) : open(key.ctx.get(), job);
      job.state = ok ? JobState::done : JobState::failed;
      processed_ += ok;
    }
  }
  void finish(std::span<RecordJob>) noexcept override {}

  std::vector<std::pair<std::string, uint64_t>> counters() const override { return {{"queue_records", processed_}}; }
  std::string record_counter() const override { return "queue_records"; }

 private:
  struct Key {
    CipherCtxPtr ctx;
    KeyUse use;
  };

  static bool begin(EVP_CIPHER_CTX* ctx, const RecordJob& job, int seals) noexcept {
    int n = 0;
    return EVP_CipherInit_ex(ctx, nullptr, nullptr, nullptr, bytes(job.nonce.data()), seals) == 1 &&
           EVP_CipherUpdate(ctx, nullptr, &n, bytes(job.record), kRecordHeaderBytes) == 1;
  }
  static bool seal(EVP_CIPHER_CTX* ctx, RecordJob& job) noexcept {
    std::byte* out = job.record + kRecordHeaderBytes;
    const unsigned char type = job.type;
    int n = 0;
    return begin(ctx, job, 1) &&
           (job.bytes == 0 || EVP_EncryptUpdate(ctx, bytes(out), &n, bytes(job.plain), static_cast<int>(job.bytes)) == 1) &&
           EVP_EncryptUpdate(ctx, bytes(out + job.bytes), &n, &type, 1) == 1 &&
           EVP_EncryptFinal_ex(ctx, bytes(out + job.bytes + 1), &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, kTagBytes, out + job.bytes + 1) == 1;
  }
  static bool open(EVP_CIPHER_CTX* ctx, RecordJob& job) noexcept {
    std::byte* in = job.record + kRecordHeaderBytes;
    const int size = static_cast<int>(job.bytes - kTagBytes);
    int n = 0;
    return begin(ctx, job, 0) && EVP_DecryptUpdate(ctx, bytes(in), &n, bytes(in), size) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, kTagBytes, in + size) == 1 &&
           EVP_DecryptFinal_ex(ctx, bytes(in + size), &n) == 1;
  }

  Cipher cipher_;
  std::vector<Key> keys_;
  std::vector<KeyHandle> free_;
  uint64_t processed_ = 0;
};

class EvpDevice final : public AeadDevice {
 public:
  explicit EvpDevice(Cipher cipher) : cipher_(cipher) {
    facts_ = {"openssl-evp", "openssl-evp", std::string("OpenSSL ") + OpenSSL_version(OPENSSL_VERSION_STRING), "cpu", {}};
  }
  const AeadFacts& facts() const override { return facts_; }
  Expected<std::unique_ptr<Aead>> make_queue() override { return std::make_unique<EvpAead>(cipher_); }

 private:
  Cipher cipher_;
  AeadFacts facts_;
};

}  // namespace

Expected<std::unique_ptr<AeadDevice>> make_evp_device(const AeadConfig& config) {
  return std::make_unique<EvpDevice>(config.cipher);
}

}  // namespace fsbl
