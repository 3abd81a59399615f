// TLS flows of one load thread: an SSL_CTX, the SVID validator and a session cache of one (with `resumption: on`).
#pragma once
#include <memory>

#include "harness/transport/transport.h"
#include "transports/socket/stream.h"

namespace fsbl {

// context.secrets: {key_pem, chain_pem, bundle_pem, trust_domain, peer_id}; key_pem and chain_pem may be missing
// (a client without certificate: a negative probe).
Expected<std::unique_ptr<StreamFactory>> make_tls_streams(const DriverContext& context, const EngineDescriptor& engine);

}  // namespace fsbl
