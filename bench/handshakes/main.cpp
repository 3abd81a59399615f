// fsbl-bench-handshakes: how many full mutual TLS 1.3 handshakes a second one core makes against a given server.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>

#include "bench/handshakes/handshake_load.h"
#include "harness/core/file.h"

namespace fsbl::bench {
namespace {

struct Arguments {
  std::string address, local_address, key, chain, bundle, trust_domain = "fsbl.test", peer_id, until = "closed";
  std::vector<uint16_t> ports;
  uint32_t at_a_time = 8, per_driver = 512;
  double warm_up_s = 0.2, measure_s = 2;
  int cpu = 0;
};

Expected<> pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    return fault_errno("run on CPU " + std::to_string(cpu), errno, "name a CPU that this process may use");
  return {};
}

Expected<Json> run(const Arguments& arguments) {
  FSBL_TRY(pin(arguments.cpu));
  HandshakeLoad load;
  DriverContext& context = load.context;
  context.config.transport = {"mtls", "none", "tls", "openssl"};
  context.address = arguments.address;
  context.local_address = arguments.local_address;
  context.secrets = {{"trust_domain", arguments.trust_domain}, {"peer_id", arguments.peer_id}};
  const std::pair<const char*, std::string> files[] = {
      {"key_pem", arguments.key}, {"chain_pem", arguments.chain}, {"bundle_pem", arguments.bundle}};
  for (const auto& [name, path] : files) {
    FSBL_ASSIGN(context.secrets[name], read_file(path, 1 << 20));
  }
  load.ports = arguments.ports;
  load.at_a_time = arguments.at_a_time;
  load.per_driver = std::max(arguments.per_driver, arguments.at_a_time);
  load.until = arguments.until == "closed" ? Until::closed : Until::first_byte;
  load.warm_up = static_cast<Nanos>(arguments.warm_up_s * 1e9);
  load.measure = static_cast<Nanos>(arguments.measure_s * 1e9);
  FSBL_ASSIGN(const HandshakeReading reading, run_handshakes(load));
  const double seconds = static_cast<double>(reading.window) / 1e9;
  Json json = {{"handshakes", reading.handshakes}, {"seconds", seconds},
               {"per_s", static_cast<double>(reading.handshakes) / seconds},
               {"cpu_s", static_cast<double>(reading.cpu) / 1e9}, {"failed", reading.failed},
               {"at_a_time", load.at_a_time}, {"until", arguments.until}, {"negotiated", reading.sample}};
  if (reading.failed > 0) json["first_failure"] = reading.first_failure;
  return json;
}

}  // namespace
}  // namespace fsbl::bench

int main(int argc, char** argv) {
#ifndef __SANITIZE_ADDRESS__  // LeakSanitizer looks at the process from outside
  prctl(PR_SET_DUMPABLE, 0);  // a key is in memory: no core file
#endif
  signal(SIGPIPE, SIG_IGN);
  fsbl::bench::Arguments a;
  CLI::App app{"Full mutual TLS 1.3 handshakes against a server, as many as one core makes; prints JSON."};
  app.add_option("address", a.address, "the server's IP address")->required();
  app.add_option("port", a.ports, "the server's ports; connections take them by turns")->required();
  app.add_option("--local-address", a.local_address, "address to connect from")->required();
  app.add_option("--key", a.key, "private key, PEM")->required();
  app.add_option("--chain", a.chain, "X.509-SVID and intermediates, PEM")->required();
  app.add_option("--bundle", a.bundle, "CA certificates of the trust domain, PEM")->required();
  app.add_option("--trust-domain", a.trust_domain, "trust domain of both sides")->capture_default_str();
  app.add_option("--peer-id", a.peer_id, "the SPIFFE ID that the server must have")->required();
  app.add_option("--at-a-time", a.at_a_time, "connections under way")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--per-driver", a.per_driver, "connections after which the TLS context is made anew")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  app.add_option("--until", a.until, "what a handshake counts from: the server's `closed` (its close_notify) or its "
                 "`first-byte`")->capture_default_str()->check(CLI::IsMember({"closed", "first-byte"}));
  app.add_option("--warm-up", a.warm_up_s, "seconds before the window")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 600.0));
  app.add_option("--seconds", a.measure_s, "seconds of the window")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--cpu", a.cpu, "the CPU to run on")->capture_default_str()->check(CLI::Range(0, CPU_SETSIZE - 1));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = fsbl::bench::run(a);
  if (!done) {
    std::fprintf(stderr, "fsbl-bench-handshakes: %s\n", done.error().message().c_str());
    return fsbl::exit_code(done.error().kind);
  }
  std::printf("%s\n", fsbl::dump_json(*done).c_str());
  return 0;
}
