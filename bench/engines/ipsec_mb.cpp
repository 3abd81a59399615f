// Intel's multi-buffer library called directly, the fastest way its interface has: the bar for what the cryptodev
// engine may lose on the way to it. GCM by the one-call functions; ChaCha20-Poly1305 has none, so by jobs.
#include "bench/engines/backend.h"

#ifdef FSBL_HAVE_IPSEC_MB
#include <intel-ipsec-mb.h>

#include <cstring>
#endif

namespace fsbl::bench {

#ifndef FSBL_HAVE_IPSEC_MB

std::vector<BackendKind> ipsec_mb_kinds() { return {}; }

#else
namespace {

struct MgrFree {
  void operator()(IMB_MGR* mgr) const { free_mb_mgr(mgr); }
};

class IpsecMbBackend final : public Backend {
 public:
  static Expected<std::unique_ptr<Backend>> make(const std::string& name, Cipher cipher,
                                                 std::span<const std::byte> key) {
    std::unique_ptr<IpsecMbBackend> backend(new IpsecMbBackend(cipher));
    if (!backend->mgr_) return unavailable("use " + name, "alloc_mb_mgr failed");
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(backend->mgr_.get(), &arch);
    if (const int error = imb_get_errno(backend->mgr_.get()); error != 0)
      return unavailable("use " + name, imb_get_strerror(error));
    std::memcpy(backend->raw_key_, key.data(), key.size());
    if (cipher == Cipher::aes_128_gcm) IMB_AES128_GCM_PRE(backend->mgr_.get(), key.data(), &backend->key_);
    if (cipher == Cipher::aes_256_gcm) IMB_AES256_GCM_PRE(backend->mgr_.get(), key.data(), &backend->key_);
    return std::unique_ptr<Backend>(std::move(backend));
  }

  bool seal(std::span<RecordJob> jobs) override {
    if (cipher_ == Cipher::chacha20_poly1305) return chacha(jobs, IMB_DIR_ENCRYPT);
    const auto encrypt = cipher_ == Cipher::aes_128_gcm ? mgr_->gcm128_enc : mgr_->gcm256_enc;
    for (RecordJob& job : jobs) {
      uint8_t* record = bytes(job.record);
      const uint32_t text = job.bytes + 1;
      encrypt(&key_, &context_, record + kRecordHeaderBytes, bytes(job.plain), text, bytes(job.nonce.data()), record,
              kRecordHeaderBytes, record + kRecordHeaderBytes + text, kTagBytes);
    }
    return true;
  }
  bool open(std::span<RecordJob> jobs) override {
    if (cipher_ == Cipher::chacha20_poly1305) return chacha(jobs, IMB_DIR_DECRYPT);
    const auto decrypt = cipher_ == Cipher::aes_128_gcm ? mgr_->gcm128_dec : mgr_->gcm256_dec;
    bool ok = true;
    for (RecordJob& job : jobs) {
      uint8_t* record = bytes(job.record);
      uint8_t* text = record + kRecordHeaderBytes;
      const size_t length = job.bytes - kTagBytes;
      uint8_t tag[kTagBytes];
      decrypt(&key_, &context_, text, text, length, bytes(job.nonce.data()), record, kRecordHeaderBytes, tag,
              kTagBytes);
      ok &= std::memcmp(tag, text + length, kTagBytes) == 0;
    }
    return ok;
  }

 private:
  explicit IpsecMbBackend(Cipher cipher) : cipher_(cipher), mgr_(alloc_mb_mgr(0)) {}
  static uint8_t* bytes(const std::byte* p) { return reinterpret_cast<uint8_t*>(const_cast<std::byte*>(p)); }

  bool chacha(std::span<RecordJob> jobs, IMB_CIPHER_DIRECTION direction) {
    const bool seals = direction == IMB_DIR_ENCRYPT;
    size_t done = 0;
    uint8_t tags[Aead::kBurst][kTagBytes];
    const auto count = [&](const IMB_JOB* job) { done += job && job->status == IMB_STATUS_COMPLETED; };
    for (size_t i = 0; i < jobs.size(); ++i) {
      uint8_t* record = bytes(jobs[i].record);
      uint8_t* text = record + kRecordHeaderBytes;
      const size_t length = seals ? jobs[i].bytes + 1 : jobs[i].bytes - kTagBytes;
      IMB_JOB* job = IMB_GET_NEXT_JOB(mgr_.get());
      job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
      job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
      job->cipher_direction = direction;
      job->chain_order = seals ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
      job->enc_keys = job->dec_keys = raw_key_;
      job->key_len_in_bytes = 32;
      job->u.CHACHA20_POLY1305.aad = record;
      job->u.CHACHA20_POLY1305.aad_len_in_bytes = kRecordHeaderBytes;
      job->src = seals ? bytes(jobs[i].plain) : text;
      job->dst = text;
      job->iv = bytes(jobs[i].nonce.data());
      job->iv_len_in_bytes = kNonceBytes;
      job->cipher_start_src_offset_in_bytes = job->hash_start_src_offset_in_bytes = 0;
      job->msg_len_to_cipher_in_bytes = job->msg_len_to_hash_in_bytes = length;
      job->auth_tag_output = seals ? text + length : tags[i];
      job->auth_tag_output_len_in_bytes = kTagBytes;
      count(IMB_SUBMIT_JOB_NOCHECK(mgr_.get()));
    }
    while (const IMB_JOB* job = IMB_FLUSH_JOB(mgr_.get())) count(job);
    bool ok = done == jobs.size();
    if (!seals)
      for (size_t i = 0; i < jobs.size(); ++i)
        ok &= std::memcmp(tags[i], bytes(jobs[i].record) + kRecordHeaderBytes + jobs[i].bytes - kTagBytes,
                          kTagBytes) == 0;
    return ok;
  }

  Cipher cipher_;
  std::unique_ptr<IMB_MGR, MgrFree> mgr_;
  alignas(64) gcm_key_data key_{};
  gcm_context_data context_{};
  uint8_t raw_key_[32] = {};
};

}  // namespace

std::vector<BackendKind> ipsec_mb_kinds() {
  return {{"ipsec_mb", {std::begin(kCiphers), std::end(kCiphers)}, IpsecMbBackend::make}};
}
#endif

}  // namespace fsbl::bench
