#include "harness/transport/registry.h"

#include <fmt/format.h>

namespace fsbl {
namespace {

template <class Descriptor>
const Descriptor* find(std::span<const Descriptor* const> table, std::string_view name) {
  for (const Descriptor* member : table)
    if (member->name == name) return member;
  return nullptr;
}

tl::unexpected<Error> not_built(const Composition& composition, std::string_view part, const std::string& name) {
  return unavailable(composition.name, fmt::format("{} '{}' is not in this build yet", part, name));
}

std::string engine_text(const Composition& composition, const Json& facts) {
  const EngineDescriptor* engine = find_engine(composition.engine);
  std::string text = composition.engine, device(engine ? engine->device_class : "");
  if (facts.is_object()) {
    device = facts.value("device_class", device);
    std::string driver = facts.value("driver", std::string());
    if (driver.starts_with("crypto_")) driver.erase(0, 7);
    if (!driver.empty() && driver != text) text += " " + driver;
  }
  if (device == "cpu") return text + " (CPU)";
  if (device == "accelerator" || device == "nic") return fmt::format("{} (offloaded: {})", text, device);
  return device.empty() ? text : fmt::format("{} ({})", text, device);
}

}  // namespace

const TunnelDescriptor* find_tunnel(std::string_view name) { return find(tunnels(), name); }
const SessionDescriptor* find_session(std::string_view name) { return find(sessions(), name); }
const EngineDescriptor* find_engine(std::string_view name) { return find(engines(), name); }

Expected<> usable(const Composition& composition, const Host& host) {
  const TunnelDescriptor* tunnel = find_tunnel(composition.tunnel);
  if (!tunnel) return not_built(composition, "tunnel", composition.tunnel);
  const SessionDescriptor* session = find_session(composition.session);
  if (!session) return not_built(composition, "session", composition.session);
  if (!host.reason_no_testbed.empty())
    return unavailable(composition.name, host.reason_no_testbed);
  if (session->has_records != !composition.engine.empty())
    return bad_input(composition.name, session->has_records
                                           ? fmt::format("session '{}' needs a record engine", composition.session)
                                           : fmt::format("session '{}' has no records for engine '{}'",
                                                         composition.session, composition.engine));
  FSBL_TRY(tunnel->usable(host));
  FSBL_TRY(session->usable(host));
  if (!composition.engine.empty()) {
    const EngineDescriptor* engine = find_engine(composition.engine);
    if (!engine) return not_built(composition, "record engine", composition.engine);
    FSBL_TRY(engine->usable(host));
  }
  return {};
}

std::string label(const Composition& composition, const Json& facts) {
  std::string text;
  if (composition.tunnel == "wireguard") text = "WireGuard (kernel)";
  else if (composition.tunnel == "wireguard-go") text = "WireGuard (wireguard-go, CPU)";
  else if (composition.tunnel != "none") text = composition.tunnel + " · " + engine_text(composition, facts);
  if (composition.session == "tls") {
    text += std::string(text.empty() ? "" : " + ") + "mTLS · " + engine_text(composition, facts);
  } else if (composition.session != "plain") {
    text += std::string(text.empty() ? "" : " + ") + composition.session + " (no network)";
  }
  return text.empty() ? "plaintext" : text;
}

std::string family(const Composition& composition) {
  const bool tls = composition.session == "tls", tunnelled = composition.tunnel != "none";
  if (composition.session == "plain") return tunnelled ? "wireguard" : "plaintext";
  if (!tls || tunnelled) return "other";
  const bool software = composition.engine == "openssl" || composition.engine == "openssl-evp";
  return software ? "mtls-software" : "mtls-offloaded";
}

}  // namespace fsbl
