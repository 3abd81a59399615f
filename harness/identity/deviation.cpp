#include "harness/identity/deviation.h"

namespace fsbl {

Expected<Deviation> deviation_of(std::string_view kind) {
  Deviation d;
  if (kind == "good" || kind == "none") return d;
  if (kind == "expired") d.expired = true;
  else if (kind == "not-yet-valid") d.not_yet_valid = true;
  else if (kind == "wrong-trust-domain") d.uri = "spiffe://elsewhere.test/worker/client";
  else if (kind == "wrong-id") d.uri = "spiffe://fsbl.test/somebody/else";
  else if (kind == "no-uri-san") d.no_uri_san = true;
  else if (kind == "two-uri-sans") d.two_uri_sans = true;
  else if (kind == "ca-as-leaf") d.ca_true = true;
  else if (kind == "cert-sign") d.cert_sign = true;
  else if (kind == "no-digital-signature") d.no_digital_signature = true;
  else if (kind == "server-auth-only") d.server_auth_only = true;
  else return bad_input("certificate kind '" + std::string(kind) + "'", "unknown", "see tls.client_svid in scenarios/README.md");
  return d;
}

}  // namespace fsbl
