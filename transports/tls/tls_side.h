// The agent's end of session `tls`: makes the key and the request, takes the certificate, proves the layer.
#pragma once
#include <memory>

#include "harness/transport/transport.h"

namespace fsbl {

// Offer: {csr_pem, spiffe_id}. Grant: {chain_pem, bundle_pem, trust_domain, peer_id, present: bool}.
std::unique_ptr<Side> make_tls_side(const SideContext& context);

// The ids that fsbl's own workers carry.
inline constexpr const char* kTrustDomain = "fsbl.test";
std::string worker_spiffe_id(Role role);

}  // namespace fsbl
