// Owning pointers for OpenSSL 3.0 objects, and its errors as text. For files that speak to libcrypto
// themselves.
#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace fsbl {

template <auto Free>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
inline void free_x509_stack(STACK_OF(X509) * stack) noexcept {
  sk_X509_pop_free(stack, X509_free);
}
inline void free_extensions(STACK_OF(X509_EXTENSION) * stack) noexcept {
  sk_X509_EXTENSION_pop_free(stack, X509_EXTENSION_free);
}

using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;
using PkeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using X509ReqPtr = std::unique_ptr<X509_REQ, OpensslFree<X509_REQ_free>>;
using X509StackPtr = std::unique_ptr<STACK_OF(X509), OpensslFree<free_x509_stack>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), OpensslFree<free_extensions>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;
using StoreCtxPtr = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;

// Drops what a scope adds to this thread's error queue, so that SSL_get_error() in the caller isn't misled.
class OpensslErrorScope {
 public:
  OpensslErrorScope() { ERR_set_mark(); }
  OpensslErrorScope(const OpensslErrorScope&) = delete;
  OpensslErrorScope& operator=(const OpensslErrorScope&) = delete;
  ~OpensslErrorScope() { ERR_pop_to_mark(); }
};

// The reason of the newest error on this thread's queue ("wrong tag"); never holds data of ours.
inline std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason ? reason : "OpenSSL gave no reason";
}

}  // namespace fsbl
