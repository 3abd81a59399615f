// The memory BIO between OpenSSL and a worker's buffers: reads take from the ciphertext lent for one call, writes
// append to the buffer lent for one call. No copy is kept and nothing is allocated after the SSL object exists.
#pragma once
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include "harness/transport/record_engine.h"

namespace fsbl {

struct TlsWire {
  WireIn* in = nullptr;    // null: nothing to read now
  WireOut* out = nullptr;  // null: writing is an error
  static TlsWire* of(SSL* ssl) { return static_cast<TlsWire*>(BIO_get_data(SSL_get_rbio(ssl))); }
};

// The method's callbacks find their TlsWire by BIO_get_data(). The caller frees with BIO_meth_free().
inline BIO_METHOD* make_wire_bio_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "fsbl wire");
  if (!method) return nullptr;
  BIO_meth_set_read_ex(method, [](BIO* bio, char* to, size_t most, size_t* got) -> int {
    auto* wire = static_cast<TlsWire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = wire->in ? wire->in->take(to, most) : 0;
    if (*got == 0) BIO_set_retry_read(bio);
    return *got > 0;
  });
  BIO_meth_set_write_ex(method, [](BIO* bio, const char* from, size_t size, size_t* put) -> int {
    auto* wire = static_cast<TlsWire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (!wire->out) return 0;
    wire->out->put(from, size);
    *put = size;
    return !wire->out->overflow;
  });
  BIO_meth_set_ctrl(method, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH; });
  BIO_meth_set_create(method, [](BIO* bio) -> int {
    BIO_set_init(bio, 1);
    return 1;
  });
  return method;
}

}  // namespace fsbl
