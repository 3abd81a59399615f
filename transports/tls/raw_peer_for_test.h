// For tests: a TLS peer that is OpenSSL and nothing else, and a relay that can hurt what passes. Neither blocks: the
// test turns them between the turns of our own end.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "harness/core/fd.h"
#include "transports/contract_pair.h"

namespace fsbl::contract {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline UniqueFd connect_to(uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

struct Listener {
  Listener() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd.get(), 16), 0);
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  UniqueFd accept() { return UniqueFd(accept4(fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); }
  UniqueFd fd;
  uint16_t port = 0;
};

class RawPeer {
 public:
  // `identity`: a worker's secrets; its key and chain are presented if it has them, its peer is not checked.
  RawPeer(Role role, const Json& identity, int highest_version = TLS1_3_VERSION)
      : ctx_(SSL_CTX_new(role == Role::server ? TLS_server_method() : TLS_client_method())) {
    SSL_CTX_set_max_proto_version(ctx_.get(), highest_version);
    SSL_CTX_set_verify(ctx_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(ctx_.get(), [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
    if (const std::string chain = identity.value("chain_pem", std::string()); !chain.empty()) {
      const std::string key = identity.value("key_pem", std::string());
      const std::unique_ptr<BIO, Free> chain_bio(BIO_new_mem_buf(chain.data(), -1)), key_bio(BIO_new_mem_buf(key.data(), -1));
      const std::unique_ptr<X509, Free> leaf(PEM_read_bio_X509(chain_bio.get(), nullptr, nullptr, nullptr));
      const std::unique_ptr<EVP_PKEY, Free> pkey(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
      EXPECT_EQ(SSL_CTX_use_certificate(ctx_.get(), leaf.get()), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey(ctx_.get(), pkey.get()), 1);
    }
    ssl_.reset(SSL_new(ctx_.get()));
    if (role == Role::server) SSL_set_accept_state(ssl_.get());
    else SSL_set_connect_state(ssl_.get());
  }

  void take(UniqueFd fd) {
    fd_ = std::move(fd);
    EXPECT_EQ(fcntl(fd_.get(), F_SETFL, O_NONBLOCK), 0);
    SSL_set_fd(ssl_.get(), fd_.get());
  }
  void drop() { fd_.reset(); }

  SSL* ssl() { return ssl_.get(); }
  bool connected() const { return fd_.get() >= 0; }
  bool up() const { return SSL_is_init_finished(ssl_.get()); }
  // One step of the handshake, or one read.
  void turn() {
    if (!connected() || !error_.empty()) return;
    ERR_clear_error();
    char chunk[16384];
    const int n = up() ? SSL_read(ssl_.get(), chunk, sizeof chunk) : SSL_do_handshake(ssl_.get());
    if (n > 0 && up() && n != 1) received_.append(chunk, static_cast<size_t>(n));
    const int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), n);
    if (error == SSL_ERROR_ZERO_RETURN) closed_ = true;
    else if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      const char* reason = ERR_reason_error_string(ERR_peek_last_error());
      error_ = reason ? reason : "connection lost";
    }
  }
  bool send(std::string_view text) {
    return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }
  const std::string& received() const { return received_; }
  const std::string& error() const { return error_; }
  bool closed() const { return closed_; }

 private:
  struct Free {
    void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
    void operator()(SSL* p) const { SSL_free(p); }
    void operator()(BIO* p) const { BIO_free(p); }
    void operator()(X509* p) const { X509_free(p); }
    void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  };
  std::unique_ptr<SSL_CTX, Free> ctx_;
  std::unique_ptr<SSL, Free> ssl_;
  UniqueFd fd_;
  std::string received_, error_;
  bool closed_ = false;
};

// Passes one connection's bytes on, to `port`.
class Relay {
 public:
  explicit Relay(uint16_t to) : to_(to) {}
  uint16_t port() const { return listener_.port; }

  void turn() {
    if (!ends_[0]) {
      ends_[0] = listener_.accept();
      if (!ends_[0]) return;
      ends_[1] = connect_to(to_);
      for (UniqueFd& end : ends_) EXPECT_EQ(fcntl(end.get(), F_SETFL, O_NONBLOCK), 0);
    }
    for (Role sender : kRoles) {
      if (cut_[of(sender)]) continue;
      char chunk[4096];
      const ssize_t n = recv(ends_[of(sender)].get(), chunk, sizeof chunk, 0);
      if (n == 0) cut(sender);
      if (n <= 0) continue;
      if (flip_ == sender && flip_after_ < n) {
        chunk[flip_after_] ^= 1;
        flip_.reset();
      }
      if (flip_ == sender) flip_after_ -= n;
      if (::send(ends_[1 - of(sender)].get(), chunk, static_cast<size_t>(n), MSG_NOSIGNAL) != n) cut(sender);
    }
  }
  // Inverts one bit of what `sender` sends, `after` bytes from now.
  void flip(Role sender, ssize_t after) { flip_ = sender, flip_after_ = after; }
  bool flipped() const { return !flip_; }
  // What `sender` sends from now on is lost; its peer sees a FIN.
  void cut(Role sender) {
    cut_[of(sender)] = true;
    shutdown(ends_[1 - of(sender)].get(), SHUT_WR);
  }

 private:
  Listener listener_;
  uint16_t to_;
  UniqueFd ends_[2];  // by the role of who is there
  bool cut_[2] = {};
  std::optional<Role> flip_;
  ssize_t flip_after_ = 0;
};

}  // namespace fsbl::contract
