// Full mutual TLS 1.3 handshakes against one host, over and over, with the driver that fsbl's own rounds use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/transport/driver.h"

namespace fsbl::bench {

// A TLS 1.3 client has done its part before the server has looked at the client's certificate. So a handshake counts
// only once the server said something under the connection's keys: the answer to our close_notify, or a first byte.
enum class Until { closed, first_byte };

struct HandshakeLoad {
  DriverContext context;      // role client; transport session tls
  // Flow places take the ports by turns. With as many ports as flows at a time, a server that serves one connection
  // after another (openssl s_server) never lets one flow wait for another's.
  std::vector<uint16_t> ports;
  uint32_t at_a_time = 8;     // flows under way
  uint32_t per_driver = 512;  // flows of one driver: it keeps them all (sockets too) until it goes
  Until until = Until::closed;
  Nanos warm_up = 200'000'000, measure = 2'000'000'000;
};

struct HandshakeReading {
  uint64_t handshakes = 0, failed = 0;   // accepted by the server inside the window; ended otherwise, ever
  Nanos window = 0, cpu = 0;             // the window's length, and this thread's CPU time inside it
  std::string first_failure;
  Json sample;                           // what was negotiated, of one handshake
};

// On the calling thread. An error: no driver, no socket. Flows that fail are counted, not an error; but once more than
// `at_a_time` of them have failed before any succeeded, it gives up.
Expected<HandshakeReading> run_handshakes(const HandshakeLoad& load);

}  // namespace fsbl::bench
