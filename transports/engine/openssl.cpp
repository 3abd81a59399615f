// Record engine `openssl`: the records stay inside the library (SSL_write, SSL_read over the session's memory BIOs).
// Records are counted by OpenSSL's own message callback: it names each record header that was written or read.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "harness/transport/transport.h"
#include "transports/tls/tls_bio.h"

namespace fsbl {
namespace {

class OpensslEngine final : public RecordEngine {
 public:
  explicit OpensslEngine(SSL* ssl) : ssl_(ssl), wire_(TlsWire::of(ssl)) {
    SSL_set_msg_callback(ssl_, count_record);
    SSL_set_msg_callback_arg(ssl_, this);
  }
  ~OpensslEngine() override { SSL_set_msg_callback(ssl_, nullptr); }

  bool seal(std::span<const std::byte> plain, WireOut& out) noexcept override {
    wire_->out = &out;
    size_t written = 0;
    ERR_clear_error();
    const bool ok = SSL_write_ex(ssl_, plain.data(), plain.size(), &written) == 1 && written == plain.size();
    wire_->out = nullptr;
    if (!ok) error_ = "SSL_write failed";
    return ok;
  }

  Opened open(WireIn& in, std::span<std::byte> plain, size_t& bytes, WireOut& out) noexcept override {
    wire_->in = &in;
    wire_->out = &out;
    bytes = 0;
    Opened result = Opened::ok;
    ERR_clear_error();
    for (;;) {
      size_t got = 0;
      if (SSL_read_ex(ssl_, plain.data() + bytes, plain.size() - bytes, &got) == 1) {
        bytes += got;
        if (bytes < plain.size()) continue;
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

 private:
  static void count_record(int outgoing, int, int type, const void* header, size_t size, SSL*, void* self) noexcept {
    if (type != SSL3_RT_HEADER || size < 5 || static_cast<const uint8_t*>(header)[0] != SSL3_RT_APPLICATION_DATA) return;
    auto* engine = static_cast<OpensslEngine*>(self);
    ++(outgoing ? engine->records_out_ : engine->records_in_);
  }

  SSL* ssl_;
  TlsWire* wire_;
  const char* error_ = "";
  uint64_t records_out_ = 0, records_in_ = 0;
};

}  // namespace

extern const EngineDescriptor engine_openssl;
const EngineDescriptor engine_openssl = {
    .name = "openssl",
    .summary = "records inside OpenSSL, on the worker's CPU",
    .device_class = "cpu",
    .usable = [](const Host&) -> Expected<> { return {}; },
    .make = [](const EngineContext& context) -> Expected<std::unique_ptr<RecordEngine>> {
      return std::make_unique<OpensslEngine>(context.ssl);
    },
};

}  // namespace fsbl
