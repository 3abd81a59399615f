// Transports are compositions: tunnel ∘ session ∘ record engine. This header is what a new member implements.
//
// Two processes, two interfaces. A Side sets up one end in the agent (privileged, one thread, may block for a
// bounded time). A Driver moves bytes in the worker (unprivileged, one per load thread, never blocks longer than
// its deadline, never allocates, locks, logs or throws after open()). harness/transport/driver.h has the Driver.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/result/path.h"
#include "harness/scenario/model.h"

namespace fsbl {

// Where bytes of a round enter and leave this host: `outer` is the underlay, `inner` what sessions connect over.
struct Device {
  std::string name;      // "eth0", "wg0"
  int ifindex = 0;
  int l2_bytes = 14;     // 0 for devices without an Ethernet header (tun, wireguard)
  uint32_t mtu = 0;
  std::string address;   // this side's, without prefix length
  std::string peer;      // the other side's
};
struct Attachment {
  Device outer, inner;
};

// What a Side is given when it is made. Lives as long as the Side.
struct SideContext {
  Role role = Role::client;
  CellConfig config;
  Device link;                 // the testbed's link on this host
  std::vector<int> tunnel_cpus;  // affinity for daemons
};

// Counters by name at one moment; the unit is part of the name's meaning ("tx_bytes").
using Counters = std::vector<std::pair<std::string, uint64_t>>;

// What the round moved, by the workers' own count; what a layer's counters are held against.
struct Traffic {
  uint64_t sent_bytes = 0;      // application bytes this side sent (whole round: hello, warm-up, window, drain)
  uint64_t received_bytes = 0;
  uint64_t flows = 0;
  Json worker;                  // the worker's reading (session counters, handshakes), see harness/protocol
};

// One layer's end in the agent. Calls come in this order, each at most once, from one thread:
//   prepare → up → (witness → measuring → witness → prove) → down.  down() may come at any time.
class Side {
 public:
  virtual ~Side() = default;
  // Makes keys and whatever the peer must know. Returns the *public* offer only; private keys stay in this process.
  virtual Expected<Json> prepare() = 0;
  // Brings the layer up against the peer's offer; `grant` is what the controller adds (certificates). Returns when
  // the layer can carry traffic (handshake done, neighbours resolved) or within a bounded time with the reason.
  virtual Expected<> up(const Json& peer_offer, const Json& grant) = 0;
  // After up(): changes `attachment.inner` when the layer adds a device. Sessions leave it alone.
  virtual void attach(Attachment& attachment) const { (void)attachment; }
  // Second half of up() for layers whose both ends must exist first (a tunnel's handshake). Default: nothing.
  virtual Expected<> establish() { return {}; }
  // What the worker needs in memory (private key, chain, trust bundle, peer id). May hold secrets: it goes to the
  // worker over an inherited descriptor and nowhere else. Empty when the layer has none.
  virtual Json worker_secrets() const { return Json::object(); }
  virtual Expected<Counters> witness() { return Counters{}; }
  virtual std::vector<LayerProof> prove(const Counters& before, const Counters& after, const Traffic& traffic) = 0;
  virtual std::vector<pid_t> daemons() const { return {}; }   // processes whose CPU time belongs to the transport
  virtual void down() noexcept = 0;
};

// What a host offers, gathered once by the agent or by `fsbl doctor`; members ask it instead of the kernel.
struct Host {
  bool net_admin = false;       // CAP_NET_ADMIN in this network namespace
  bool tun = false;             // /dev/net/tun opens
  std::string wireguard_go;     // path, or empty
  bool kernel_wireguard = false;
  bool kernel_tls = false;
  std::string openssl_version;
  std::string reason_no_testbed;  // why namespaces can't be made here, or empty
};
Host probe_host();

struct TunnelDescriptor {
  std::string_view name, summary;
  Expected<> (*usable)(const Host&);                            // the error says why not, and the fix
  std::unique_ptr<Side> (*make_side)(const SideContext&);
};

class Driver;         // harness/transport/driver.h
struct DriverContext;
struct SessionDescriptor {
  std::string_view name, summary;
  bool has_records = false;                                     // needs a record engine
  bool in_process = false;                                      // no peer, no network: tests the harness itself
  Expected<> (*usable)(const Host&);
  std::unique_ptr<Side> (*make_side)(const SideContext&);       // agent
  Expected<std::unique_ptr<Driver>> (*make_driver)(const DriverContext&);  // worker, one per load thread
};

class RecordEngines;   // harness/transport/record_engine.h
struct EngineConfig;
struct EngineDescriptor {
  std::string_view name, summary;
  std::string_view device_class;   // "cpu", "nic", "accelerator", "kernel"; empty: only the device can tell
  bool needs_secrets = false;      // owns the records: takes the traffic secrets from the handshake
  Expected<> (*usable)(const Host&);
  // Worker, one per load thread and on it. Also how an engine is tried before a run (fsbl-worker --check-engine).
  Expected<std::unique_ptr<RecordEngines>> (*make)(const EngineConfig&);
};

}  // namespace fsbl
