#include "harness/scenario/presets.h"

#include <array>
#include <vector>

#include "harness/scenario/text.h"

namespace fsbl {
namespace {

constexpr std::array kPresets = {
    Preset{"plaintext", "none", "plain", "", "TCP without protection"},
    Preset{"wireguard", "wireguard", "plain", "", "TCP through kernel WireGuard"},
    Preset{"wireguard-go", "wireguard-go", "plain", "", "TCP through user-space WireGuard"},
    Preset{"wireguard-gpu", "ztt", "plain", "cuda", "TCP through a tunnel protected on a GPU"},
    Preset{"mtls", "none", "tls", "openssl", "mutual TLS 1.3, records by OpenSSL"},
    Preset{"mtls-ktls", "none", "tls", "ktls", "mutual TLS 1.3, records by the kernel"},
    Preset{"mtls-dpdk", "none", "tls", "cryptodev", "mutual TLS 1.3, records by a DPDK cryptodev"},
    Preset{"mtls-cuda", "none", "tls", "cuda", "mutual TLS 1.3, records on a GPU"},
    Preset{"null", "none", "null", "", "no network: the cost of the harness itself"},
};

// "tunnel+session" or "tunnel+session+engine", the way compose() names what has no preset.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('+', begin), name.size());
    parts.emplace_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::span<const Preset> presets() {
  return kPresets;
}

Composition compose(std::string tunnel, std::string session, std::string engine) {
  if (session == "tls" && engine.empty()) engine = "openssl";
  Composition composition{.tunnel = tunnel, .session = session, .engine = engine};
  for (const Preset& preset : kPresets) {
    if (preset.tunnel == tunnel && preset.session == session && preset.engine == engine) {
      composition.name = preset.name;
      return composition;
    }
  }
  for (const std::string& part : {tunnel, session, engine})
    if (!part.empty()) composition.name += (composition.name.empty() ? "" : "+") + part;
  return composition;
}

Expected<Composition> composition_of(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name)
      return compose(std::string(preset.tunnel), std::string(preset.session), std::string(preset.engine));
    known.push_back(preset.name);
  }
  if (const auto parts = parts_of(name); parts.size() == 2 || parts.size() == 3) {
    bool words = true;
    for (const std::string& part : parts) words = words && is_word(part, "-_", 32);
    if (words) return compose(parts[0], parts[1], parts.size() == 3 ? parts[2] : "");
  }
  return bad_input("transport " + quote(name), "unknown", suggestion(name, known));
}

}  // namespace fsbl
