// Record engine `openssl`: the records stay inside the library (SSL_write, SSL_read over the session's memory BIOs).
// Records are counted by OpenSSL's own message callback: it names each record header that was written or read.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "harness/transport/transport.h"
#include "transports/record/record_layer.h"
#include "transports/tls/tls_bio.h"

namespace fsbl {
namespace {

class NoBatch final : public RecordBatch {
 public:
  bool empty() const noexcept override { return true; }
};

class OpensslEngine final : public RecordEngine {
 public:
  // `plain`: where what was opened goes; the load thread's, shared by its flows.
  OpensslEngine(SSL* ssl, std::span<std::byte> plain, uint64_t rekey_records)
      : ssl_(ssl), wire_(TlsWire::of(ssl)), plain_(plain), rekey_records_(rekey_records) {
    SSL_set_msg_callback(ssl_, count_record);
    SSL_set_msg_callback_arg(ssl_, this);
  }
  ~OpensslEngine() override { SSL_set_msg_callback(ssl_, nullptr); }

  bool seal(std::span<const std::byte> plain, WireOut& out, RecordBatch&, size_t& taken) noexcept override {
    wire_->out = &out;
    taken = 0;
    bool ok = true;
    ERR_clear_error();
    while (ok && taken < plain.size()) {
      // OpenSSL 3.0 sends no KeyUpdate by itself.
      if (since_update_ >= rekey_records_) {
        ok = SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
        since_update_ = 0;
      }
      const size_t until_update = std::min<uint64_t>(rekey_records_ - since_update_, plain.size()) * kMaxRecordBytes;
      size_t written = 0;
      ok = ok && SSL_write_ex(ssl_, plain.data() + taken, std::min(plain.size() - taken, until_update), &written) == 1;
      taken += written;
    }
    wire_->out = nullptr;
    if (!ok) error_ = "SSL_write failed";
    return ok;
  }

  // The plaintext is one piece: there is room for all that one receive can bring.
  Opened open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept override {
    WireIn in{wire.data(), wire.size()};
    wire_->in = &in;
    wire_->out = &out;
    size_t bytes = 0;
    Opened result = Opened::ok;
    ERR_clear_error();
    for (;;) {
      size_t got = 0;
      if (SSL_read_ex(ssl_, plain_.data() + bytes, plain_.size() - bytes, &got) == 1) {
        bytes += got;
        if (bytes < plain_.size()) continue;
        break;
      }
      const int error = SSL_get_error(ssl_, 0);
      if (error == SSL_ERROR_WANT_READ) break;
      result = error == SSL_ERROR_ZERO_RETURN ? Opened::closed : Opened::failed;
      if (result == Opened::failed) error_ = "SSL_read failed";
      break;
    }
    wire_->in = nullptr;
    wire_->out = nullptr;
    taken = wire.size() - in.size;
    if (bytes > 0) plain.push_back(plain_.first(bytes));
    return result;
  }

  void close(WireOut& out) noexcept override {
    wire_->out = &out;
    SSL_shutdown(ssl_);
    wire_->out = nullptr;
  }

  const char* error() const noexcept override { return error_; }
  uint64_t records_out() const noexcept override { return records_out_; }
  uint64_t records_in() const noexcept override { return records_in_; }
  uint64_t key_updates_out() const noexcept override { return key_updates_out_; }
  uint64_t key_updates_in() const noexcept override { return key_updates_in_; }

 private:
  static void count_record(int outgoing, int, int type, const void* data, size_t size, SSL*, void* self) noexcept {
    auto* engine = static_cast<OpensslEngine*>(self);
    const auto first = size > 0 ? *static_cast<const uint8_t*>(data) : 0;
    if (type == SSL3_RT_HANDSHAKE && first == SSL3_MT_KEY_UPDATE) {
      ++(outgoing ? engine->key_updates_out_ : engine->key_updates_in_);
      if (outgoing) engine->since_update_ = 0;
    }
    if (type != SSL3_RT_HEADER || first != SSL3_RT_APPLICATION_DATA) return;
    ++(outgoing ? engine->records_out_ : engine->records_in_);
    if (outgoing) ++engine->since_update_;
  }

  SSL* ssl_;
  TlsWire* wire_;
  std::span<std::byte> plain_;
  uint64_t rekey_records_, since_update_ = 0;
  const char* error_ = "";
  uint64_t records_out_ = 0, records_in_ = 0, key_updates_out_ = 0, key_updates_in_ = 0;
};

class OpensslEngines final : public RecordEngines {
 public:
  explicit OpensslEngines(const TlsConfig& tls) : plain_(kMostReceived + 2 * RecordEngine::kMaxRecordBytes) {
    const auto suite = suite_of(tls.cipher);
    rekey_records_ = rekey_limit(suite ? suite->cipher : Cipher::aes_256_gcm);
    if (tls.rekey_records > 0) rekey_records_ = std::min(rekey_records_, tls.rekey_records);
  }
  Expected<std::unique_ptr<RecordEngine>> make(const EngineContext& context) override {
    return std::make_unique<OpensslEngine>(context.ssl, plain_, rekey_records_);
  }
  std::unique_ptr<RecordBatch> make_batch() override { return std::make_unique<NoBatch>(); }
  Json facts() const override {
    return {{"device", "openssl"}, {"driver", "openssl"}, {"version", std::string("OpenSSL ") + OpenSSL_version(OPENSSL_VERSION_STRING)},
            {"device_class", "cpu"}, {"features", Json::array()}, {"counters", Json::object()}};
  }

 private:
  std::vector<std::byte> plain_;
  uint64_t rekey_records_;
};

}  // namespace

extern const EngineDescriptor engine_openssl;
const EngineDescriptor engine_openssl = {
    .name = "openssl",
    .summary = "records inside OpenSSL, on the worker's CPU",
    .device_class = "cpu",
    .usable = [](const Host&) -> Expected<> { return {}; },
    .make = [](const EngineConfig& config) -> Expected<std::unique_ptr<RecordEngines>> {
      return std::make_unique<OpensslEngines>(config.cell->tls);
    },
};

}  // namespace fsbl
