// Tunnel "wireguard-go": WireGuard in user space, one daemon a host, between the two ends of the testbed's
// link.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>

#include <optional>

#include "harness/core/fd.h"
#include "transports/wireguard/daemon.h"
#include "transports/wireguard/device.h"
#include "transports/wireguard/proof.h"

namespace fsbl {
namespace {

using namespace wireguard;

constexpr const char* kDevice = "wg0";
constexpr uint16_t kListenPort = 51820;
constexpr uint16_t kDiscardPort = 9;  // RFC 863; what the handshake is provoked with
// A lost first message is repeated by WireGuard after 5 s (REKEY_TIMEOUT), and a repeated one may be lost
// too.
constexpr Nanos kHandshakeLimit = 12'000'000'000;
constexpr Nanos kSendEvery = 100'000'000, kPollEvery = 5'000'000;

// Inner addresses: from the ranges for benchmarks (RFC 2544, RFC 5180), apart from those of the link.
InnerAddress inner_address(Role role, IpFamily family) {
  const bool client = role == Role::client;
  if (family == IpFamily::v4) return {family, client ? "198.19.0.1" : "198.19.0.2", 30};
  return {family, client ? "2001:2:0:ffff::1" : "2001:2:0:ffff::2", 126};
}

// What WireGuard adds to a packet: outer IP header, UDP header (8), type and receiver (8), counter (8), tag
// (16).
uint32_t overhead(IpFamily family) {
  return family == IpFamily::v4 ? 20 + 40 : 40 + 40;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Expected<SocketAddress> socket_address(const std::string& text, uint16_t port, IpFamily family) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  bool good = false;
  if (family == IpFamily::v4) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    good = inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1;
    address.size = sizeof v4;
  } else {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    good = inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1;
    address.size = sizeof v6;
  }
  if (!good)
    return bad_input("set up wireguard-go", "'" + text + "' is no address of the testbed's IP family");
  return address;
}

struct Peer {
  PublicKey public_key{};
  uint16_t port = 0;
  std::string inner_address;
};

Expected<Peer> read_offer(const Json& offer, IpFamily family) {
  const std::string what = "read the peer's WireGuard offer";
  const auto text = [&](const char* key) {
    const auto at = offer.find(key);
    return at != offer.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  Peer peer;
  FSBL_ASSIGN(peer.public_key, public_key_from_base64(text("public_key")));
  const auto port = offer.find("listen_port");
  if (port == offer.end() || !port->is_number_unsigned() || *port == 0 || *port > 65535)
    return bad_input(what, "no listen_port from 1 to 65535");
  peer.port = port->get<uint16_t>();
  peer.inner_address = text("inner_address");
  FSBL_TRY(socket_address(peer.inner_address, kDiscardPort, family));
  return peer;
}

void nap(Nanos duration) {
  const timespec time{duration / 1'000'000'000, duration % 1'000'000'000};
  nanosleep(&time, nullptr);
}

class WireguardGo final : public Side {
 public:
  explicit WireguardGo(const SideContext& context)
      : context_(context),
        family_(context.config.testbed.ip),
        address_(inner_address(context.role, family_)) {}
  ~WireguardGo() override { down(); }

  Expected<Json> prepare() override {
    FSBL_ASSIGN(keys_, make_key_pair());
    return Json{{"public_key", to_base64(keys_->public_key)},
                {"listen_port", kListenPort},
                {"inner_address", address_.text}};
  }

  Expected<> up(const Json& peer_offer, const Json&) override {
    const std::string what = "bring up wireguard-go";
    if (!keys_) return fault(what, "prepare() was not called");
    FSBL_ASSIGN(peer_, read_offer(peer_offer, family_));
    FSBL_TRY(socket_address(context_.link.peer, peer_.port, family_));
    if (context_.link.mtu <= overhead(family_))
      return bad_input(what, "the link's MTU leaves no room for a packet");
    const std::string program = find_program("wireguard-go");
    if (program.empty()) return unavailable(what, "no program wireguard-go", "apt-get install wireguard-go");

    FSBL_ASSIGN(daemon_, Daemon::start(program, kDevice, context_.tunnel_cpus));
    FSBL_TRY(configure_device(kDevice, mtu(), address_).map_error([this](Error error) {
      return daemon_->explain(std::move(error));
    }));
    FSBL_TRY(daemon_->configure(keys_->secret, kListenPort, peer_config()));
    keys_.reset();  // the daemon has it now
    FSBL_ASSIGN(ifindex_, device_index(kDevice));
    return {};
  }

  // The client's datagram makes the tunnel shake hands; the server sees its end of the handshake complete.
  Expected<> establish() override {
    const std::string what = "shake hands through wireguard-go";
    if (!daemon_) return fault(what, "up() was not called");
    FSBL_ASSIGN(const SocketAddress target, socket_address(peer_.inner_address, kDiscardPort, family_));
    const UniqueFd socket(::socket(target.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return fault_errno(what, errno);
    const Nanos deadline = mono_now_ns() + kHandshakeLimit;
    int send_error = 0;
    for (Nanos next_send = 0;;) {
      FSBL_ASSIGN(const PeerState peer, peer_state());
      if (peer.last_handshake_time_sec != 0) return {};
      const Nanos now = mono_now_ns();
      if (now > deadline) break;
      if (context_.role == Role::client && now >= next_send) {
        // A refusal here (nobody listens on the port, no route yet) says nothing about the handshake.
        const bool sent = ::sendto(socket.get(), "", 1, 0, target.get(), target.size) == 1;
        send_error = sent ? 0 : errno;
        next_send = now + kSendEvery;
      }
      nap(kPollEvery);
    }
    std::string why = "no handshake with " + context_.link.peer + " within 12 s";
    if (send_error != 0) why += "; last send: " + errno_text(send_error);
    return tl::unexpected(daemon_->explain({ErrorKind::fault, what, std::move(why), {}}));
  }

  void attach(Attachment& attachment) const override {
    attachment.inner = Device{kDevice, ifindex_, 0, mtu(), address_.text, peer_.inner_address};
  }

  Expected<Counters> witness() override {
    FSBL_ASSIGN(const PeerState peer, peer_state());
    return Counters{{"tx_bytes", peer.tx_bytes},
                    {"rx_bytes", peer.rx_bytes},
                    {"last_handshake_time_sec", peer.last_handshake_time_sec},
                    {"last_handshake_time_nsec", peer.last_handshake_time_nsec}};
  }

  std::vector<LayerProof> prove(const Counters& before, const Counters& after,
                                const Traffic& traffic) override {
    const Claim claim{std::string(to_text(context_.role)), "wireguard-go (CPU)",
                      std::string("UAPI get of ") + kDevice, "self", "cpu"};
    LayerProof proof = prove_by_counters(claim, before, after, traffic);
    if (!daemon_ || !daemon_->alive()) {
      proof.verdict = Verdict::unproven;
      proof.witnessed = daemon_ ? daemon_->explain({ErrorKind::fault, {}, "the daemon is gone", {}}).why
                                : "the tunnel is down";
    }
    return {std::move(proof)};
  }

  std::vector<pid_t> daemons() const override {
    return daemon_ ? std::vector<pid_t>{daemon_->pid()} : std::vector<pid_t>{};
  }

  void down() noexcept override {
    daemon_.reset();
    keys_.reset();
  }

 private:
  uint32_t mtu() const { return context_.link.mtu - overhead(family_); }

  PeerConfig peer_config() const {
    const std::string port = std::to_string(peer_.port);
    const bool v4 = family_ == IpFamily::v4;
    return {peer_.public_key, v4 ? context_.link.peer + ":" + port : "[" + context_.link.peer + "]:" + port,
            peer_.inner_address + (v4 ? "/32" : "/128")};
  }

  Expected<PeerState> peer_state() {
    if (!daemon_) return fault("read WireGuard state", "the tunnel is down");
    FSBL_ASSIGN(const DeviceState state, daemon_->state());
    if (state.peers.size() != 1)
      return fault("read WireGuard state", std::to_string(state.peers.size()) + " peers where there is one");
    return state.peers.front();
  }

  const SideContext context_;
  const IpFamily family_;
  const InnerAddress address_;
  std::optional<wireguard::KeyPair> keys_;  // from prepare() until the daemon has them
  Peer peer_;
  std::optional<Daemon> daemon_;
  int ifindex_ = 0;
};

Expected<> usable_here(const Host& host) {
  const std::string what = "use tunnel wireguard-go";
  if (host.wireguard_go.empty())
    return unavailable(what, "no program wireguard-go", "apt-get install wireguard-go");
  if (!host.tun)
    return unavailable(what, "/dev/net/tun can't be opened", "modprobe tun, or pass the device in");
  if (!host.net_admin) return unavailable(what, "no CAP_NET_ADMIN", "run as root or allow user namespaces");
  return {};
}

std::unique_ptr<Side> make_side(const SideContext& context) {
  return std::make_unique<WireguardGo>(context);
}

}  // namespace

extern const TunnelDescriptor tunnel_wireguard_go;
const TunnelDescriptor tunnel_wireguard_go = {"wireguard-go", "WireGuard in user space (wireguard-go)",
                                              usable_here, make_side};

}  // namespace fsbl
