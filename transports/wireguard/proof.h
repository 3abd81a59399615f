// Whether a tunnel's own counters bear out what the workers say went through it. Pure.
#pragma once
#include <string>

#include "harness/transport/transport.h"

namespace fsbl::wireguard {

struct Claim {
  std::string side, claimed, source;  // "client", "wireguard-go (CPU)", "UAPI get of wg0"
  std::string kind, device_class;     // of the witness, as in LayerProof
};

// Counters: tx_bytes, rx_bytes, last_handshake_time_sec. A WireGuard message is longer than what it carries,
// so the counters must rise at least as much as the application's bytes:
//   proved        both did, and there was a handshake
//   contradicted  less came in than the application received, or next to nothing went out of what it sent:
//   those
//                 bytes went another way
//   unproven      nothing was sent, a counter is missing or went backwards, or part of what was sent is
//   unaccounted
//                 for (it may have died in a socket's buffer)
LayerProof prove_by_counters(const Claim& claim, const Counters& before, const Counters& after,
                             const Traffic& traffic);

}  // namespace fsbl::wireguard
