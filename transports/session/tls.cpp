// Session `tls`: TLS 1.3 only, mutual, with SVIDs on both sides (RFC 8446; SPIFFE X.509-SVID). OpenSSL makes the
// handshake over memory BIOs; a record engine owns the records afterwards.
#include "transports/tls/tls_stream.h"

#include "harness/transport/registry.h"
#include "transports/tls/tls_side.h"
#include "transports/socket/socket_driver.h"

namespace fsbl {

extern const SessionDescriptor session_tls;
const SessionDescriptor session_tls = {
    .name = "tls",
    .summary = "TLS 1.3, mutual, X.509-SVIDs on both sides",
    .has_records = true,
    .usable = [](const Host&) -> Expected<> { return {}; },
    .make_side = make_tls_side,
    .make_driver = [](const DriverContext& context) -> Expected<std::unique_ptr<Driver>> {
      const EngineDescriptor* engine = find_engine(context.config.transport.engine);
      if (!engine) return unavailable("record engine " + context.config.transport.engine, "not in this build");
      FSBL_ASSIGN(auto streams, make_tls_streams(context, *engine));
      return SocketDriver::create(context, std::move(streams));
    },
};

}  // namespace fsbl
