// One wireguard-go process with its tun device, in the network namespace of the caller.
#pragma once
#include <string>
#include <vector>

#include "harness/core/fd.h"
#include "harness/core/process.h"
#include "transports/wireguard/uapi.h"

namespace fsbl::wireguard {

// The destructor kills the daemon; its device, its socket and its mounts go with it.
//
// wireguard-go puts its control socket into /var/run/wireguard, which all network namespaces of a host share
// (two daemons with a "wg0" each would collide) and which an ordinary user cannot make. So the daemon gets a
// mount namespace of its own with an empty tmpfs there, and the socket is reached through /proc/<pid>/root.
class Daemon {
 public:
  // Runs wireguard-go in the foreground and waits (bounded) until it answers. `cpus` empty: those of the
  // caller. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN over the caller's namespaces. Errors end with the daemon's
  // last words.
  static Expected<Daemon> start(const std::string& program, const std::string& device,
                                const std::vector<int>& cpus);
  // Call after the device is up; on return the daemon has bound `listen_port`.
  Expected<> configure(const SecretKey& key, uint16_t listen_port, const PeerConfig& peer);
  Expected<DeviceState> state();
  pid_t pid() const { return child_.pid(); }
  bool alive() { return !child_.wait(0); }
  // Adds why the daemon ended, if it did, and the end of its log.
  Error explain(Error error);

 private:
  Daemon() = default;
  Expected<std::string> ask(std::string_view request);

  Child child_;
  UniqueFd log_;
  std::string socket_;
};

// First executable of that name on PATH or in the system's folders; empty when there is none.
std::string find_program(std::string_view name);

}  // namespace fsbl::wireguard
