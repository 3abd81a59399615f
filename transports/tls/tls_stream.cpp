#include "transports/tls/tls_stream.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "harness/core/json.h"
#include "harness/identity/openssl.h"
#include "harness/identity/svid.h"
#include "transports/tls/tls_bio.h"

namespace fsbl {
namespace {

using SslCtxPtr = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, OpensslFree<SSL_SESSION_free>>;
using BioMethodPtr = std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>>;

// The alert that the peer sent, if that is why OpenSSL failed (reason codes from SSL_AD_REASON_OFFSET on).
const char* alert_received() {
  const unsigned long code = ERR_peek_last_error();
  if (ERR_GET_LIB(code) != ERR_LIB_SSL || ERR_GET_REASON(code) < SSL_AD_REASON_OFFSET) return nullptr;
  const int alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
  if (alert == TLS13_AD_CERTIFICATE_REQUIRED) return "certificate required";  // OpenSSL 3.0 has no text for it
  return SSL_alert_desc_string_long(alert);
}

// RFC 8446 names where OpenSSL has others.
std::string group_name(SSL* ssl) {
  const char* name = SSL_group_to_name(ssl, SSL_get_negotiated_group(ssl));
  const std::string text = name ? name : "unknown";
  if (text == "x25519") return "X25519";
  if (text == "secp256r1" || text == "prime256v1") return "P-256";
  if (text == "secp384r1") return "P-384";
  return text;
}

std::string signature_name(SSL* ssl) {
  int type = 0, digest = 0;
  if (SSL_get_peer_signature_type_nid(ssl, &type) != 1) return "none (resumed)";
  SSL_get_peer_signature_nid(ssl, &digest);
  if (type == EVP_PKEY_ED25519) return "ed25519";
  if (type == EVP_PKEY_EC && digest == NID_sha256) return "ecdsa_secp256r1_sha256";
  return fmt::format("{} {}", OBJ_nid2sn(type), digest ? OBJ_nid2sn(digest) : "");
}

class TlsStreams;

class TlsStream final : public Stream, private TicketSink {
 public:
  TlsStream(TlsStreams& owner, SslPtr ssl);
  ~TlsStream() override { engine_.reset(); }

  static void note_secret(const SSL* ssl, const char* line) noexcept;

  State handshake(WireIn& in, WireOut& out) noexcept override;
  bool seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& batch, size_t& taken) noexcept override;
  bool failed() noexcept override;
  Opened open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept override;
  void close(WireOut& out) noexcept override { engine_->close(out); }
  std::string error() const override { return error_; }
  FlowReport report() const override;
  Json refusal() const override;

  std::string local_refusal;    // why our own validator refused the peer
  PeerIdentity peer;

 private:
  void note_failure() noexcept;
  bool finish_handshake() noexcept;
  void ticket(std::span<const std::byte> record) noexcept override;
  static void count_record(int outgoing, int, int type, const void* header, size_t, SSL*, void* self) noexcept;

  TlsStreams& owner_;
  SslPtr ssl_;
  TlsWire wire_;
  TrafficSecrets secrets_;      // until the engine has them
  bool has_secret_[2] = {};     // of the client, of the server
  std::unique_ptr<RecordEngine> engine_;
  Json handshake_;
  std::string error_, alert_;
  bool opened_any_ = false;     // a first authenticated byte came from the peer
};

class TlsStreams final : public StreamFactory {
 public:
  static Expected<std::unique_ptr<StreamFactory>> create(const DriverContext& context, const EngineDescriptor& engine);
  Expected<std::unique_ptr<Stream>> make() override;

  RecordEngines& engines() override { return *engines_; }
  bool needs_secrets() const { return needs_secrets_; }
  bool resumes() const { return resumption_; }
  const SvidValidator& validator() const { return *validator_; }
  bool server() const { return server_; }
  void keep(SSL_SESSION* session) { session_.reset(session); }

 private:
  TlsStreams() = default;
  Expected<> load_identity(const DriverContext& context);
  static int verify(X509_STORE_CTX* store, void* self) noexcept;

  std::unique_ptr<RecordEngines> engines_;
  bool needs_secrets_ = false, server_ = false, resumption_ = false;
  std::unique_ptr<SvidValidator> validator_;
  BioMethodPtr bio_method_;
  SslCtxPtr ctx_;
  SessionPtr session_;  // the newest ticket (client, resumption on)
};

TlsStream::TlsStream(TlsStreams& owner, SslPtr ssl) : owner_(owner), ssl_(std::move(ssl)) {
  BIO_set_data(SSL_get_rbio(ssl_.get()), &wire_);
  SSL_set_app_data(ssl_.get(), this);
  if (!owner_.needs_secrets()) return;
  SSL_set_msg_callback(ssl_.get(), count_record);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

void TlsStream::note_failure() noexcept {
  try {
    const bool own_records = engine_ && owner_.needs_secrets();
    if (const char* alert = own_records ? engine_->alert() : alert_received()) alert_ = alert;
    error_ = !local_refusal.empty() ? local_refusal
             : !alert_.empty()      ? "alert from the peer: " + alert_
             : own_records          ? engine_->error()
                                    : openssl_reason();
  } catch (...) {
  }
}

bool TlsStream::finish_handshake() noexcept {
  try {
    SSL* ssl = ssl_.get();
    if (SSL_session_reused(ssl)) {  // no certificate was sent: check the one that the session remembers
      X509Ptr leaf(SSL_get1_peer_certificate(ssl));
      auto checked = owner_.validator().check(leaf.get(), SSL_get_peer_cert_chain(ssl));
      if (!checked) {
        local_refusal = error_ = checked.error().why;
        return false;
      }
      peer = std::move(*checked);
    }
    handshake_ = {{"time", utc_now()}, {"side", owner_.server() ? "server" : "client"}, {"peer_id", peer.spiffe_id},
                  {"serial", peer.serial_hex}, {"version", SSL_get_version(ssl)}, {"cipher", SSL_get_cipher_name(ssl)},
                  {"group", group_name(ssl)}, {"signature", signature_name(ssl)},
                  {"resumed", SSL_session_reused(ssl) == 1}, {"result", "accepted"}};
    const bool own_records = owner_.needs_secrets();
    if (own_records && !(has_secret_[0] && has_secret_[1])) {
      error_ = "OpenSSL gave no traffic secrets";
      return false;
    }
    auto engine = owner_.engines().make({ssl, own_records ? &secrets_ : nullptr,
                                         owner_.resumes() && !owner_.server() ? this : nullptr});
    secrets_.wipe();
    if (!engine) {
      error_ = engine.error().message();
      return false;
    }
    engine_ = std::move(*engine);
    return true;
  } catch (...) {
    return false;
  }
}

Stream::State TlsStream::handshake(WireIn& in, WireOut& out) noexcept {
  wire_ = {&in, &out};
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  State state = State::handshaking;
  if (done == 1) {
    state = finish_handshake() ? State::open : State::failed;
  } else if (SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ) {
    note_failure();
    state = State::failed;
  }
  wire_ = {};
  return state;
}

// Lines of the SSLKEYLOGFILE format: "CLIENT_TRAFFIC_SECRET_0 <client random> <secret>", in hexadecimal.
void TlsStream::note_secret(const SSL* ssl, const char* line) noexcept {
  auto* self = static_cast<TlsStream*>(SSL_get_app_data(ssl));
  const std::string_view text = line;
  const bool client = text.starts_with("CLIENT_TRAFFIC_SECRET_0 "), server = text.starts_with("SERVER_TRAFFIC_SECRET_0 ");
  if (!client && !server) return;
  const std::string_view hex = text.substr(text.rfind(' ') + 1);
  auto& secret = client ? self->secrets_.client : self->secrets_.server;
  if (hex.size() % 2 != 0 || hex.size() / 2 > secret.size()) return;
  for (size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    secret[i / 2] = static_cast<std::byte>(i % 2 == 0 ? digit << 4 : std::to_integer<int>(secret[i / 2]) | digit);
  }
  self->secrets_.bytes = hex.size() / 2;
  self->has_secret_[server] = true;
}

// Records under the traffic secrets that OpenSSL itself moved (a server's tickets): their sequence numbers are taken.
// OpenSSL names a secret when it installs it, so what comes after that is under it.
void TlsStream::count_record(int outgoing, int, int type, const void* header, size_t, SSL*, void* self) noexcept {
  auto* stream = static_cast<TlsStream*>(self);
  if (type != SSL3_RT_HEADER || *static_cast<const uint8_t*>(header) != SSL3_RT_APPLICATION_DATA) return;
  const bool by_server = stream->owner_.server() == (outgoing != 0);
  if (!stream->has_secret_[by_server]) return;
  ++(outgoing ? stream->secrets_.sent_records : stream->secrets_.received_records);
}

// The library reads the ticket itself: it has seen every record before it, so its own sequence number is right.
void TlsStream::ticket(std::span<const std::byte> record) noexcept {
  WireIn in{record.data(), record.size()};
  wire_ = {&in, nullptr};
  char none = 0;
  size_t got = 0;
  ERR_clear_error();
  SSL_read_ex(ssl_.get(), &none, 1, &got);
  wire_ = {};
}

bool TlsStream::seal(std::span<const std::byte> plain, WireOut& out, RecordBatch& batch, size_t& taken) noexcept {
  if (engine_->seal(plain, out, batch, taken)) return true;
  note_failure();
  return false;
}

bool TlsStream::failed() noexcept {
  if (!*engine_->error()) return false;
  note_failure();
  return true;
}

Opened TlsStream::open(std::span<std::byte> wire, size_t& taken, Pieces& plain, WireOut& out) noexcept {
  const size_t before = plain.size();
  const Opened opened = engine_->open(wire, taken, plain, out);
  if (plain.size() > before) opened_any_ = true;
  if (opened == Opened::failed) note_failure();
  return opened;
}

FlowReport TlsStream::report() const {
  FlowReport report;
  report.handshake = handshake_;
  if (engine_) {
    report.records_out = engine_->records_out();
    report.records_in = engine_->records_in();
    report.key_updates_out = engine_->key_updates_out();
    report.key_updates_in = engine_->key_updates_in();
  }
  return report;
}

Json TlsStream::refusal() const {
  if (opened_any_ || error_.empty()) return nullptr;
  if (engine_ && alert_.empty()) return nullptr;  // after our handshake only the peer can still refuse: by an alert
  return {{"time", utc_now()}, {"side", owner_.server() ? "server" : "client"},
          {"by", alert_.empty() ? "us" : "peer"}, {"reason", error_}, {"peer_id", peer.spiffe_id}};
}

int TlsStreams::verify(X509_STORE_CTX* store, void* self) noexcept {
  try {
    auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* stream = static_cast<TlsStream*>(SSL_get_app_data(ssl));
    const auto checked = static_cast<TlsStreams*>(self)->validator_->check(X509_STORE_CTX_get0_cert(store),
                                                                            X509_STORE_CTX_get0_untrusted(store));
    if (checked) {
      stream->peer = *checked;
      X509_STORE_CTX_set_error(store, X509_V_OK);
      return 1;
    }
    stream->local_refusal = checked.error().why;
    const bool time = checked.error().why == "expired";
    X509_STORE_CTX_set_error(store, time ? X509_V_ERR_CERT_HAS_EXPIRED : X509_V_ERR_APPLICATION_VERIFICATION);
  } catch (...) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
  }
  return 0;
}

Expected<> TlsStreams::load_identity(const DriverContext& context) {
  const auto text = [&](const char* key) { return context.secrets.value(key, std::string()); };
  FSBL_ASSIGN(auto validator, SvidValidator::create(text("bundle_pem"), text("trust_domain"), text("peer_id")));
  validator_ = std::make_unique<SvidValidator>(std::move(validator));
  std::string key_pem = text("key_pem");
  const std::string chain_pem = text("chain_pem");
  if (chain_pem.empty()) return {};
  BioPtr key_bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  PkeyPtr key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  wipe(key_pem);
  if (!key) return fault("load the private key", openssl_reason());
  BioPtr chain_bio(BIO_new_mem_buf(chain_pem.data(), static_cast<int>(chain_pem.size())));
  X509Ptr leaf(PEM_read_bio_X509(chain_bio.get(), nullptr, nullptr, nullptr));
  if (!leaf || SSL_CTX_use_certificate(ctx_.get(), leaf.get()) != 1 || SSL_CTX_use_PrivateKey(ctx_.get(), key.get()) != 1)
    return fault("load the certificate", openssl_reason());
  while (X509Ptr next{PEM_read_bio_X509(chain_bio.get(), nullptr, nullptr, nullptr)})
    SSL_CTX_add1_chain_cert(ctx_.get(), next.get());
  ERR_clear_error();
  return {};
}

Expected<std::unique_ptr<StreamFactory>> TlsStreams::create(const DriverContext& context,
                                                            const EngineDescriptor& engine) {
  std::unique_ptr<TlsStreams> streams(new TlsStreams);
  FSBL_ASSIGN(streams->engines_, engine.make({&context.config, context.role, context.thread, context.threads, context.engine_module}));
  streams->needs_secrets_ = engine.needs_secrets;
  streams->server_ = context.role == Role::server;
  streams->resumption_ = context.config.tls.resumption;
  streams->bio_method_.reset(make_wire_bio_method());
  streams->ctx_.reset(SSL_CTX_new(streams->server_ ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* ctx = streams->ctx_.get();
  if (!ctx || !streams->bio_method_) return fault("make a TLS context", openssl_reason());
  const TlsConfig& tls = context.config.tls;
  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (SSL_CTX_set_ciphersuites(ctx, tls.cipher.c_str()) != 1) return bad_input("tls.cipher " + tls.cipher, openssl_reason());
  if (SSL_CTX_set1_groups_list(ctx, tls.group.c_str()) != 1) return bad_input("tls.group " + tls.group, openssl_reason());
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(ctx, verify, streams.get());
  SSL_CTX_set_max_cert_list(ctx, 32 << 10);
  if (streams->needs_secrets_) SSL_CTX_set_keylog_callback(ctx, TlsStream::note_secret);
  if (streams->resumption_) {
    static constexpr unsigned char kContext[] = "fsbl";
    SSL_CTX_set_session_id_context(ctx, kContext, sizeof kContext - 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, [](SSL* ssl, SSL_SESSION* session) -> int {
      if (SSL_is_server(ssl)) return 0;
      auto* factory = static_cast<TlsStreams*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
      factory->keep(session);
      return 1;  // ours now
    });
    SSL_CTX_set_app_data(ctx, streams.get());
  } else {
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
  }
  FSBL_TRY(streams->load_identity(context));
  return std::unique_ptr<StreamFactory>(std::move(streams));
}

Expected<std::unique_ptr<Stream>> TlsStreams::make() {
  SslPtr ssl(SSL_new(ctx_.get()));
  BIO* bio = BIO_new(bio_method_.get());
  if (!ssl || !bio) return fault("make a TLS flow", openssl_reason());
  SSL_set_bio(ssl.get(), bio, bio);
  if (server_) SSL_set_accept_state(ssl.get());
  else SSL_set_connect_state(ssl.get());
  if (!server_ && session_) SSL_set_session(ssl.get(), session_.get());
  return std::make_unique<TlsStream>(*this, std::move(ssl));
}

}  // namespace

Expected<std::unique_ptr<StreamFactory>> make_tls_streams(const DriverContext& context, const EngineDescriptor& engine) {
  return TlsStreams::create(context, engine);
}

}  // namespace fsbl
