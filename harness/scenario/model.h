// What is to be measured, as plain data. Sizes in bytes, times in nanoseconds. No I/O.
//
// A scenario file is resolved in this order: file → profile → --set → per cell: arm, transport, matrix
// factors. Each cell therefore holds one complete CellConfig; nothing downstream looks at YAML again.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/json.h"

namespace fsbl {

enum class Shape { request_response, stream };
enum class Direction { up, down };  // up: client to server
enum class WaitMode { block, busy };
enum class Verify { sampled, full };
enum class IpFamily { v4 = 4, v6 = 6 };
enum class KeyType { p256, ed25519 };
enum class Role { client, server };

std::string_view to_text(Shape);
std::string_view to_text(Direction);
std::string_view to_text(WaitMode);
std::string_view to_text(Verify);
std::string_view to_text(KeyType);
std::string_view to_text(Role);

// transport = tunnel ∘ session ∘ record engine. `name` is the preset's name, or "tunnel+session+engine".
struct Composition {
  std::string name;
  std::string tunnel = "none";
  std::string session = "plain";
  std::string engine;  // empty: the session has no records
  bool operator==(const Composition&) const = default;
};

struct LoadConfig {
  Shape shape = Shape::request_response;
  uint64_t payload_bytes = 65536;  // request size; for streams the size of one write
  uint64_t reply_bytes = 64;       // request-response only
  uint32_t streams = 1;            // flows
  Direction direction = Direction::up;
  WaitMode wait = WaitMode::block;
  Verify verify = Verify::sampled;
};

struct PhaseConfig {
  Nanos warm_up = 30'000'000'000;
  Nanos measure = 120'000'000'000;
  Nanos cool_down = 1'000'000'000;
  uint64_t min_samples = 0;  // request-response: go on measuring until this many ...
  Nanos max_duration = 0;    // ... or this long; 0: no extension
};

struct OffloadConfig {  // empty: leave as the device has it (recorded all the same)
  std::optional<bool> tso, gro, checksum;
};

struct TestbedConfig {
  std::string kind = "netns";
  uint32_t mtu = 1500;  // 1500 or 9000 in practice; 1280..65535 accepted
  IpFamily ip = IpFamily::v4;
  OffloadConfig offloads;
  std::map<std::string, std::string> sysctls_client, sysctls_server;  // per-namespace: "net.ipv4.tcp_rmem"
  std::optional<int> numa_client, numa_server;                        // bind memory to this node
};

struct PlacementConfig {  // CPU numbers; one load thread per CPU given
  std::vector<int> client = {0};
  std::vector<int> server = {1};
  std::vector<int> tunnel;  // tunnel daemons; empty: the CPUs of their role
  // Record cryptography, one CPU a load thread, by turns; empty: on the load threads themselves.
  std::vector<int> crypto_client, crypto_server;
};

struct TlsConfig {
  std::string cipher = "TLS_AES_256_GCM_SHA384";
  std::string group = "X25519";
  KeyType key = KeyType::p256;
  bool resumption = false;
  Nanos ttl = 300'000'000'000;  // SVID lifetime
  uint64_t rekey_records = 0;   // KeyUpdate after so many sent records; 0: the cipher's limit (RFC 8446, 5.5)
  // What the side's certificate is made to be: "good", or how it is wrong (negative probes; kSvidKinds).
  std::string client_svid = "good", server_svid = "good";
};

struct CryptoConfig {  // where a record engine has a choice
  std::string device = "auto";  // cryptodev: a driver by name, with arguments, or a PCI address
};

struct WorkerConfig {  // for arms: another build of the worker, another library path
  std::string binary;  // empty: the worker of this installation
  std::map<std::string, std::string> environment;
};

struct CellConfig {
  Composition transport;
  LoadConfig load;
  PhaseConfig phases;
  TestbedConfig testbed;
  PlacementConfig placement;
  TlsConfig tls;
  CryptoConfig crypto;
  WorkerConfig worker;
  std::vector<std::string> probes;  // names; default: latency tcp_info cpu perf interface
};

struct Cell {
  std::string id;  // stable: scenario, arm, transport and factors, e.g. "fsbl/latency|mtls|payload=64KiB"
  std::string scenario;  // scenario id
  std::string arm;       // empty without --arm
  Json factors;          // {arm, transport, tunnel, session, engine, shape, payload_bytes, streams, mtu, ip,
                         //  direction, wait, ... every swept key}; values are JSON scalars
  CellConfig config;
};

struct PlannedRound {
  size_t cell = 0;  // index into RunPlan::cells
  int block = 0;    // repetition, 0-based
  int order = 0;    // position in the run, 0-based
};

struct ResolvedScenario {
  std::string id, title, path;
  Json resolved;       // after profile and --set, as JSON; the digest is over canonical_json(resolved)
  std::string digest;  // "sha256:<hex>", filled by the planner's caller (result layer owns SHA-256)
};

struct RunPlan {
  uint64_t seed = 0;
  int repetitions = 0;
  std::string profile;
  std::vector<ResolvedScenario> scenarios;
  std::vector<Cell> cells;
  std::vector<PlannedRound> rounds;  // blocks one after another, seeded order inside each
};

}  // namespace fsbl
