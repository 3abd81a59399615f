#include "harness/scenario/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/fields.h"

namespace fsbl {
namespace {

// The part of `key` below `map_key`: "net.core.x" of "testbed.sysctls.client.net.core.x"; empty when it is
// not below.
std::string_view name_below(std::string_view key, std::string_view map_key) {
  if (!key.starts_with(map_key) || key.size() < map_key.size() + 2 || key[map_key.size()] != '.') return {};
  return key.substr(map_key.size() + 1);
}

struct KnownKey {
  std::string_view key;
  KeyKind kind;
};

struct KeyLister {
  std::vector<KnownKey> keys;
  template <class T, class Kind>
  void operator()(std::string_view key, T&, const Kind&) {
    keys.push_back({key, Kind::kIsList ? KeyKind::list : KeyKind::scalar});
  }
  template <class T>
  void operator()(std::string_view key, T&, const field::TextMap&) {
    keys.push_back({key, KeyKind::map});
  }
};

const std::vector<KnownKey>& known_keys() {
  static const std::vector<KnownKey> keys = [] {
    KeyLister lister;
    CellConfig any;
    visit_fields(any, lister);
    return std::move(lister.keys);
  }();
  return keys;
}

class Setter {
 public:
  Setter(std::string_view key, const Node& value) : key_(key), value_(value) {}

  template <class T, class Kind>
  void operator()(std::string_view key, T& member, const Kind& kind) {
    if (key != key_) return;
    if (auto value = kind.read(value_)) {
      member = static_cast<T>(std::move(*value));
    } else {
      fail(value.error());
    }
  }
  template <class T, class Kind>
  void operator()(std::string_view key, std::optional<T>& member, const Kind& kind) {
    if (key != key_) return;
    T value{};
    (*this)(key, value, kind);
    member = value;
  }
  void operator()(std::string_view key, std::map<std::string, std::string>& member,
                  const field::TextMap& kind) {
    const std::string_view name = name_below(key_, key);
    if (name.empty()) return;
    if (auto known = kind.check_name(name); !known) return fail(known.error());
    if (auto value = kind.value.read(value_)) {
      member[std::string(name)] = std::move(*value);
    } else {
      fail(value.error());
    }
  }

  Expected<> result() && { return std::move(result_); }

 private:
  void fail(const Error& error) {
    result_ = bad_input(error.what.empty() ? value_.where : error.what,
                        fmt::format("{}: {}", key_, error.why), error.fix);
  }

  std::string_view key_;
  const Node& value_;
  Expected<> result_;
};

// Finds one scalar setting and hands it to `use` as (exact name, file form, exact form).
template <class Use>
class Getter {
 public:
  Getter(std::string_view key, Use use) : key_(key), use_(std::move(use)) {}

  template <class T, class Kind>
  void operator()(std::string_view key, T& member, const Kind& kind) {
    if (key == key_)
      use_(std::string(key) + std::string(kind.kSuffix), kind.file_form(member), kind.exact(member));
  }
  template <class T, class Kind>
  void operator()(std::string_view key, std::optional<T>& member, const Kind& kind) {
    if (key == key_ && member) (*this)(key, *member, kind);
  }
  void operator()(std::string_view key, std::map<std::string, std::string>& member, const field::TextMap&) {
    const auto found = member.find(std::string(name_below(key_, key)));
    if (found != member.end()) use_(std::string(key_), Json(found->second), Json(found->second));
  }

 private:
  std::string_view key_;
  Use use_;
};

struct FileFormWriter {
  Json out = Json::object();
  const std::vector<std::string>& except;

  Json& place(std::string_view dotted) {
    Json* at = &out;
    for (size_t begin = 0; begin <= dotted.size();) {
      const size_t end = std::min(dotted.find('.', begin), dotted.size());
      at = &(*at)[std::string(dotted.substr(begin, end - begin))];
      begin = end + 1;
    }
    return *at;
  }
  bool is_excepted(std::string_view key) const {
    return std::find(except.begin(), except.end(), key) != except.end();
  }
  template <class T, class Kind>
  void operator()(std::string_view key, T& member, const Kind& kind) {
    if (!is_excepted(key)) place(key) = kind.file_form(member);
  }
  template <class T, class Kind>
  void operator()(std::string_view key, std::optional<T>& member, const Kind& kind) {
    if (member) (*this)(key, *member, kind);
  }
  void operator()(std::string_view key, std::map<std::string, std::string>& member, const field::TextMap&) {
    for (const auto& [name, text] : member)
      if (!is_excepted(fmt::format("{}.{}", key, name))) place(key)[name] = text;
  }
};

}  // namespace

KeyKind key_kind(std::string_view key) {
  for (const KnownKey& known : known_keys()) {
    if (known.key == key) return known.kind;
    if (known.kind == KeyKind::map && !name_below(key, known.key).empty()) return KeyKind::scalar;
  }
  for (const KnownKey& known : known_keys())
    if (!name_below(known.key, key).empty()) return KeyKind::section;
  return KeyKind::unknown;
}

std::vector<std::string_view> keys_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const KnownKey& known : known_keys()) {
    std::string_view name = section.empty() ? known.key : name_below(known.key, section);
    name = name.substr(0, name.find('.'));
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string_view> dotted_keys() {
  std::vector<std::string_view> keys;
  for (const KnownKey& known : known_keys()) keys.push_back(known.key);
  return keys;
}

CellConfig default_config() {
  CellConfig config;
  config.probes.assign(kProbes.begin(), kProbes.end());
  return config;
}

Expected<> set(CellConfig& config, std::string_view key, const Node& value) {
  Setter setter(key, value);
  visit_fields(config, setter);
  return std::move(setter).result();
}

std::optional<Contradiction> contradiction(const CellConfig& config) {
  const PhaseConfig& phases = config.phases;
  if (phases.min_samples > 0 && phases.max_duration < phases.measure) {
    const std::string measure = file_text(config, "phases.measure");
    return Contradiction{{"phases.max_duration", "phases.min_samples"},
                         fmt::format("phases.max_duration {} is less than phases.measure {}",
                                     file_text(config, "phases.max_duration"), measure),
                         fmt::format("min_samples needs at least {}", measure)};
  }
  return std::nullopt;
}

Json file_value(const CellConfig& config, std::string_view key) {
  Json value;
  CellConfig copy = config;
  visit_fields(
      copy, Getter(key, [&](const std::string&, const Json& file_form, const Json&) { value = file_form; }));
  return value;
}

std::string file_text(const CellConfig& config, std::string_view key) {
  const Json value = file_value(config, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : dump_json(value);
}

std::pair<std::string, Json> factor(const CellConfig& config, std::string_view key) {
  std::pair<std::string, Json> factor(key, nullptr);
  CellConfig copy = config;
  visit_fields(copy, Getter(key, [&](const std::string& name, const Json&, const Json& exact) {
                 factor = {name, exact};
               }));
  return factor;
}

Json file_form(const CellConfig& config, const std::vector<std::string>& except) {
  CellConfig copy = config;
  FileFormWriter writer{.except = except};
  visit_fields(copy, writer);
  return std::move(writer.out);
}

}  // namespace fsbl
