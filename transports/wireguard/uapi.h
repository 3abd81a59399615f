// WireGuard's configuration protocol for user-space daemons: key=value lines over a Unix stream socket, a
// request and its reply each ended by an empty line (https://www.wireguard.com/xplatform/). No state; any
// thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "transports/wireguard/key.h"

namespace fsbl::wireguard {

struct PeerConfig {
  PublicKey public_key{};
  std::string endpoint;    // "198.18.0.2:51820", "[2001:2::2]:51820"
  std::string allowed_ip;  // with prefix length
};

struct PeerState {
  uint64_t tx_bytes = 0, rx_bytes = 0;  // whole WireGuard messages, in UDP payload bytes
  uint64_t last_handshake_time_sec = 0, last_handshake_time_nsec = 0;  // 0: never
};
struct DeviceState {
  uint16_t listen_port = 0;  // 0: the daemon has not bound its socket
  std::vector<PeerState> peers;
};

// Texts. A set request holds the private key, and so does a get reply: whoever holds one wipes it.
std::string set_request(const SecretKey& key, uint16_t listen_port, const PeerConfig& peer);
std::string_view get_request();
// The daemon's errno as an error. Errors name line numbers, never a line: it could be the key.
Expected<> parse_set_reply(std::string_view reply);
Expected<DeviceState> parse_get_reply(std::string_view reply);

// Sends a request and returns the reply up to its empty line; bounded in time and size.
Expected<std::string> exchange(const std::string& socket_path, std::string_view request, Nanos timeout);

}  // namespace fsbl::wireguard
