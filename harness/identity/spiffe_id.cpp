#include <algorithm>

#include "harness/identity/svid.h"

namespace fsbl {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr size_t kMaxTrustDomain = 255, kMaxId = 2048;

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool punctuation(char c) {
  return c == '.' || c == '_' || c == '-';
}
bool in_trust_domain(char c) {
  return lower_or_digit(c) || punctuation(c);
}
bool in_segment(char c) {
  return in_trust_domain(c) || (c >= 'A' && c <= 'Z');
}

// The first broken rule, or empty.
std::string_view broken_trust_domain(std::string_view domain) {
  if (domain.empty()) return "trust domain is empty";
  if (domain.size() > kMaxTrustDomain) return "trust domain is longer than 255 bytes";
  const auto bad = std::find_if_not(domain.begin(), domain.end(), in_trust_domain);
  if (bad == domain.end()) return {};
  if (domain.find('@') != domain.npos) return "trust domain has user information";
  if (domain.find('%') != domain.npos) return "trust domain is percent-encoded";
  if (*bad == ':') return "trust domain has a port";
  if (*bad >= 'A' && *bad <= 'Z') return "trust domain has upper-case letters";
  return "trust domain has a character outside [a-z0-9._-]";
}

std::string_view broken_path(std::string_view path) {
  if (path.ends_with('/')) return "path ends with a slash";
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment.empty()) return "path has an empty segment";
    if (segment == "." || segment == "..") return "path has a dot segment";
    if (segment.find('%') != segment.npos) return "path is percent-encoded";
    if (!std::all_of(segment.begin(), segment.end(), in_segment))
      return "path has a character outside [A-Za-z0-9._-]";
    path.remove_prefix(segment.size());
  }
  return {};
}

}  // namespace

Expected<SpiffeId> parse_spiffe_id(std::string_view text) {
  const auto broken = [&](std::string_view rule) {
    return bad_input("parse SPIFFE id", std::string(rule), "write spiffe://trust-domain/path");
  };
  if (text.size() > kMaxId) return broken("longer than 2048 bytes");
  if (!text.starts_with(kScheme)) return broken("does not start with spiffe://");
  text.remove_prefix(kScheme.size());
  if (text.find('?') != text.npos) return broken("has a query");
  if (text.find('#') != text.npos) return broken("has a fragment");
  const std::string_view domain = text.substr(0, text.find('/'));
  const std::string_view path = text.substr(domain.size());
  if (const auto rule = broken_trust_domain(domain); !rule.empty()) return broken(rule);
  if (const auto rule = broken_path(path); !rule.empty()) return broken(rule);
  return SpiffeId{std::string(domain), std::string(path)};
}

}  // namespace fsbl
