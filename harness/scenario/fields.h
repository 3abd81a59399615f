// Every key that configures a cell, once: its name in the file, its place in CellConfig, its kind and its
// limits. What reads or writes a configuration is a visitor of this list: v(key, member, kind).
#pragma once
#include "harness/scenario/field.h"
#include "harness/scenario/model.h"

namespace fsbl {

inline std::string_view to_text(IpFamily ip) {
  return ip == IpFamily::v4 ? "4" : "6";
}

inline constexpr std::array<std::string_view, 1> kTestbedKinds = {"netns"};
inline constexpr std::array<std::string_view, 3> kCiphers = {
    "TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"};
inline constexpr std::array<std::string_view, 3> kGroups = {"X25519", "P-256", "P-384"};
// Certificates that a side can be given; all but "good" must be refused (harness/identity/deviation.h).
inline constexpr std::array<std::string_view, 12> kSvidKinds = {
    "good",       "none",         "expired",    "not-yet-valid", "wrong-trust-domain",   "wrong-id",
    "no-uri-san", "two-uri-sans", "ca-as-leaf", "cert-sign",     "no-digital-signature", "server-auth-only"};
inline constexpr std::array<std::string_view, 5> kProbes = {"latency", "tcp_info", "cpu", "perf",
                                                            "interface"};

template <class Visitor>
void visit_fields(CellConfig& c, Visitor&& v) {
  using namespace field;
  constexpr uint64_t kMiB = 1 << 20;
  constexpr Nanos kSecond = 1'000'000'000, kDay = 86'400 * kSecond;

  v("load.shape", c.load.shape, Choice{Shape::request_response, Shape::stream});
  v("load.payload", c.load.payload_bytes, Bytes{1, 1024 * kMiB});
  v("load.reply", c.load.reply_bytes, Bytes{1, 16 * kMiB});
  v("load.streams", c.load.streams, Count{1, 10'000});
  v("load.direction", c.load.direction, Choice{Direction::up, Direction::down});
  v("load.wait", c.load.wait, Choice{WaitMode::block, WaitMode::busy});
  v("load.verify", c.load.verify, Choice{Verify::sampled, Verify::full});

  v("phases.warm_up", c.phases.warm_up, Duration{0, kDay});
  v("phases.measure", c.phases.measure, Duration{1, kDay});
  v("phases.cool_down", c.phases.cool_down, Duration{0, kDay});
  v("phases.min_samples", c.phases.min_samples, Count{0, 1'000'000'000});
  v("phases.max_duration", c.phases.max_duration, Duration{0, kDay});

  v("testbed.kind", c.testbed.kind, Name{kTestbedKinds});
  v("testbed.mtu", c.testbed.mtu, Count{1280, 65535});
  v("testbed.ip", c.testbed.ip, Choice{IpFamily::v4, IpFamily::v6});
  v("testbed.offloads.tso", c.testbed.offloads.tso, Flag{});
  v("testbed.offloads.gro", c.testbed.offloads.gro, Flag{});
  v("testbed.offloads.checksum", c.testbed.offloads.checksum, Flag{});
  v("testbed.sysctls.client", c.testbed.sysctls_client, TextMap{MapNames::sysctl});
  v("testbed.sysctls.server", c.testbed.sysctls_server, TextMap{MapNames::sysctl});
  v("testbed.numa.client", c.testbed.numa_client, Count{0, 1023});
  v("testbed.numa.server", c.testbed.numa_server, Count{0, 1023});

  v("placement.client", c.placement.client, Cpus{.min_items = 1});
  v("placement.server", c.placement.server, Cpus{.min_items = 1});
  v("placement.tunnel", c.placement.tunnel, Cpus{.min_items = 0});
  v("placement.crypto_client", c.placement.crypto_client, Cpus{.min_items = 0});
  v("placement.crypto_server", c.placement.crypto_server, Cpus{.min_items = 0});

  v("tls.cipher", c.tls.cipher, Name{kCiphers});
  v("tls.group", c.tls.group, Name{kGroups});
  v("tls.key", c.tls.key, Choice{KeyType::p256, KeyType::ed25519});
  v("tls.resumption", c.tls.resumption, Flag{});
  v("tls.ttl", c.tls.ttl, Duration{kSecond, 365 * kDay});
  v("tls.rekey_records", c.tls.rekey_records, Count{0, uint64_t{1} << 24});
  v("tls.client_svid", c.tls.client_svid, Name{kSvidKinds});
  v("tls.server_svid", c.tls.server_svid, Name{kSvidKinds});

  v("crypto.device", c.crypto.device, Text{256});

  v("worker.binary", c.worker.binary, Text{4096});
  v("worker.environment", c.worker.environment, TextMap{MapNames::environment});

  v("probes", c.probes, Names{kProbes});
}

}  // namespace fsbl
