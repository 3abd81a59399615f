#include "harness/scenario/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/scenario/field.h"
#include "harness/scenario/presets.h"
#include "harness/scenario/settings.h"
#include "harness/scenario/text.h"

namespace fsbl {
namespace {

constexpr std::array<std::string_view, 6> kRunKeys = {"id",   "title",       "description",
                                                      "seed", "repetitions", "transports"};
constexpr size_t kChangeableRunKeys = 3;         // the last of them
constexpr uint64_t kMaxSeed = (1ull << 53) - 1;  // exact in every reader of JSON
constexpr size_t kMaxSweep = 2000;
constexpr size_t kMaxTransports = 200;

std::span<const std::string_view> allowed(RunKeys run_keys) {
  switch (run_keys) {
    case RunKeys::all:
      return kRunKeys;
    case RunKeys::change:
      return std::span(kRunKeys).last(kChangeableRunKeys);
    case RunKeys::none:
      return {};
  }
  return {};
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

tl::unexpected<Error> wrong(const Node& node, std::string_view key, const Error& error) {
  return bad_input(node.where, fmt::format("{}: {}", key, error.why), error.fix);
}

tl::unexpected<Error> unknown_key(const std::string& where, std::string_view key, const std::string& section,
                                  std::vector<std::string_view> known) {
  const std::string in = section.empty() ? "" : " in " + section;
  return bad_input(where, fmt::format("unknown key {}{}", quote(key), in), suggestion(key, known));
}

// An id becomes a path below scenarios/ and a part of folder names.
bool is_id(std::string_view id) {
  return is_word(id, "-_/", 100) && id.back() != '/' && id.find("//") == std::string_view::npos;
}

Expected<> check_run_key(std::string_view key, const Node& value) {
  if (key == "transports") {
    FSBL_TRY(read_transports(value));
    return {};
  }
  if (key == "seed" || key == "repetitions") {
    FSBL_TRY(read_run_number(key, value));
    return {};
  }
  const auto text = field::Text{4096}.read(value);
  if (!text) return wrong(value, key, text.error());
  if (key == "id" && !is_id(*text))
    return bad_input(value.where, fmt::format("id: {} is not an id", quote(*text)),
                     "use letters, digits, - and _, and / for folders");
  if (key == "title" && (text->empty() || text->size() > 100 || text->find('\n') != std::string::npos))
    return bad_input(value.where, "title: not one line of at most 100 bytes");
  return {};
}

Expected<> check_value(std::string_view key, const Node& value) {
  if (contains(kRunKeys, key)) return check_run_key(key, value);
  CellConfig scratch;
  return set(scratch, key, value);
}

Expected<> check_sweep(const Entry& sweep) {
  const Node& list = sweep.value;
  if (list.kind != Node::Kind::list || list.items.empty())
    return bad_input(list.where, fmt::format("{}: what is swept is a list of at least one value", sweep.key));
  if (list.items.size() > kMaxSweep)
    return bad_input(list.where, fmt::format("{}: more than {} values", sweep.key, kMaxSweep));
  std::set<std::string> seen;
  for (const Node& item : list.items) {
    CellConfig scratch;
    FSBL_TRY(set(scratch, sweep.key, item));
    if (!seen.insert(file_text(scratch, sweep.key)).second)
      return bad_input(item.where, fmt::format("{}: {} stands twice", sweep.key, quote(item.text)));
  }
  return {};
}

Expected<> add_sweeps(const Node& matrix, Layer& layer) {
  if (matrix.kind != Node::Kind::map)
    return bad_input(matrix.where, fmt::format("matrix: {} where a map is expected", kind_text(matrix.kind)));
  for (const Member& member : matrix.members) {
    switch (key_kind(member.key)) {
      case KeyKind::scalar:
        break;
      case KeyKind::unknown:
        if (!contains(kRunKeys, member.key))
          return unknown_key(member.where, member.key, "matrix", dotted_keys());
        [[fallthrough]];
      default:
        return bad_input(member.where, fmt::format("matrix: {} can't be swept", member.key));
    }
    if (find(layer.values, member.key))
      return bad_input(member.where, fmt::format("{} is set and swept", member.key), "keep one of them");
    layer.sweeps.push_back({member.key, member.value});
    FSBL_TRY(check_sweep(layer.sweeps.back()));
  }
  return {};
}

Expected<> add_value(std::string key, const Node& value, Layer& layer) {
  FSBL_TRY(check_value(key, value));
  layer.values.push_back({std::move(key), value});
  return {};
}

// Adds what stands in a section of the file ("load", "testbed.offloads"), recursively.
Expected<> add_section(const Node& map, const std::string& section, Layer& layer) {
  if (map.kind != Node::Kind::map)
    return bad_input(map.where, fmt::format("{}: {} where a map is expected", section, kind_text(map.kind)));
  const bool is_map = key_kind(section) == KeyKind::map;
  for (const Member& member : map.members) {
    const std::string key = section + "." + member.key;
    const KeyKind kind = key_kind(key);
    // A dot in a file's key is no way around the nesting; below a map it is part of the name.
    if (kind == KeyKind::unknown || (!is_map && member.key.find('.') != std::string::npos))
      return unknown_key(member.where, member.key, section, keys_in(section));
    if (kind == KeyKind::section || kind == KeyKind::map) {
      FSBL_TRY(add_section(member.value, key, layer));
    } else {
      FSBL_TRY(add_value(key, member.value, layer));
    }
  }
  return {};
}

// Whether the values of a setting on the command line are separated by commas.
bool takes_list(std::string_view key) {
  return key == "transports" || key_kind(key) == KeyKind::list;
}
bool is_free_text(std::string_view key) {
  return key == "worker.binary" || key.starts_with("worker.environment.") ||
         key.starts_with("testbed.sysctls.");
}

Node list_of(std::string_view text, const Node& scalar) {
  Node list = scalar;
  list.kind = Node::Kind::list;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    Node item = scalar;
    item.text = text.substr(begin, end - begin);
    list.items.push_back(std::move(item));
    begin = end + 1;
  }
  return list;
}

}  // namespace

const Node* find(const std::vector<Entry>& entries, std::string_view key) {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Expected<uint64_t> read_run_number(std::string_view key, const Node& value) {
  const field::Count limits = key == "seed" ? field::Count{0, kMaxSeed} : field::Count{1, 1000};
  auto number = limits.read(value);
  if (!number) return wrong(value, key, number.error());
  return number;
}

static Expected<Composition> read_transport(const Node& node) {
  if (node.kind == Node::Kind::scalar) {
    auto composition = composition_of(node.text);
    if (!composition)
      return bad_input(node.where, composition.error().what + ": " + composition.error().why,
                       composition.error().fix);
    return composition;
  }
  if (node.kind != Node::Kind::map)
    return bad_input(
        node.where, fmt::format("transports: {} where a name or a map is expected", kind_text(node.kind)),
        node.kind == Node::Kind::null ? "write \"null\" in quotes for the preset of that name" : "");
  static constexpr std::array<std::string_view, 4> kParts = {"tunnel", "session", "engine", "name"};
  Composition parts;
  for (const Member& member : node.members) {
    if (!contains(kParts, member.key))
      return unknown_key(member.where, member.key, "a transport", {kParts.begin(), kParts.end()});
    const std::string_view others = member.key == "name" ? "-_.+" : "-_";
    const Node& value = member.value;
    if (value.kind != Node::Kind::scalar || !is_word(value.text, others, member.key == "name" ? 64 : 32))
      return bad_input(value.where, fmt::format("transports: {} is not a name", member.key));
    if (member.key == "tunnel") parts.tunnel = value.text;
    if (member.key == "session") parts.session = value.text;
    if (member.key == "engine") parts.engine = value.text;
    if (member.key == "name") parts.name = value.text;
  }
  Composition composition = compose(parts.tunnel, parts.session, parts.engine);
  if (!parts.name.empty() && parts.name != composition.name) {
    if (composition_of(parts.name))
      return bad_input(find(node, "name")->where,
                       fmt::format("transports: '{}' is the name of another composition", parts.name));
    composition.name = parts.name;
  }
  return composition;
}

Expected<std::vector<Composition>> read_transports(const Node& list) {
  if (list.kind != Node::Kind::list)
    return bad_input(list.where,
                     fmt::format("transports: {} where a list is expected", kind_text(list.kind)));
  if (list.items.empty()) return bad_input(list.where, "transports: needs at least one");
  if (list.items.size() > kMaxTransports)
    return bad_input(list.where, fmt::format("transports: more than {}", kMaxTransports));
  std::vector<Composition> transports;
  std::set<std::string> names;
  for (const Node& item : list.items) {
    FSBL_ASSIGN(Composition transport, read_transport(item));
    if (!names.insert(transport.name).second)
      return bad_input(item.where, fmt::format("transports: '{}' stands twice", transport.name));
    transports.push_back(std::move(transport));
  }
  return transports;
}

Expected<Layer> layer_of(const Node& map, RunKeys run_keys) {
  if (map.kind != Node::Kind::map)
    return bad_input(map.where, fmt::format("{} where a map is expected", kind_text(map.kind)));
  Layer layer;
  const Node* matrix = nullptr;
  for (const Member& member : map.members) {
    const KeyKind kind = member.key.find('.') == std::string::npos ? key_kind(member.key) : KeyKind::unknown;
    if (member.key == "matrix") {
      matrix = &member.value;  // after the values, to see what is both set and swept
    } else if (member.key == "profiles" && run_keys == RunKeys::all) {
      continue;
    } else if (contains(allowed(run_keys), member.key)) {
      FSBL_TRY(add_value(member.key, member.value, layer));
    } else if (contains(kRunKeys, member.key) || member.key == "profiles") {
      return bad_input(member.where, fmt::format("{} can't be changed by a profile", member.key));
    } else if (kind == KeyKind::section) {
      FSBL_TRY(add_section(member.value, member.key, layer));
    } else if (kind == KeyKind::list || kind == KeyKind::scalar) {
      FSBL_TRY(add_value(member.key, member.value, layer));
    } else {
      std::vector<std::string_view> known(allowed(run_keys).begin(), allowed(run_keys).end());
      for (const std::string_view name : keys_in("")) known.push_back(name);
      known.push_back("matrix");
      if (run_keys == RunKeys::all) known.push_back("profiles");
      return unknown_key(member.where, member.key, "", known);
    }
  }
  if (matrix) FSBL_TRY(add_sweeps(*matrix, layer));
  return layer;
}

Expected<Layer> layer_of(std::span<const std::string> words, const std::string& option, RunKeys run_keys) {
  Layer layer;
  for (const std::string& word : words) {
    Node value;
    value.kind = Node::Kind::scalar;
    value.where = option + quote(word).substr(1);
    value.where.pop_back();
    if (find_bad_text(word) != std::string::npos) return bad_input(value.where, "not UTF-8 text");
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return bad_input(value.where, "no '='", "write key=value");
    const std::string key = word.substr(0, equals);
    value.text = word.substr(equals + 1);

    const bool is_run_key = contains(kRunKeys, key) || key == "matrix" || key == "profiles";
    if (is_run_key && !contains(allowed(run_keys), key))
      return bad_input(value.where, fmt::format("{} can't be set here", key));
    const KeyKind kind = key_kind(key);
    if (!is_run_key && kind != KeyKind::scalar && kind != KeyKind::list) {
      std::vector<std::string_view> known = dotted_keys();
      known.insert(known.begin(), allowed(run_keys).begin(), allowed(run_keys).end());
      if (kind == KeyKind::unknown) return unknown_key(value.where, key, "", known);
      return bad_input(value.where, fmt::format("{} is not a single setting", key));
    }

    Layer one;
    if (takes_list(key)) {
      FSBL_TRY(add_value(key, list_of(value.text, value), one));
    } else if (kind == KeyKind::scalar && !is_free_text(key) && value.text.find(',') != std::string::npos) {
      if (run_keys == RunKeys::none)
        return bad_input(value.where, fmt::format("{}: an arm has one value", key), "make one arm of each");
      one.sweeps.push_back({key, list_of(value.text, value)});
      FSBL_TRY(check_sweep(one.sweeps.back()));
    } else {
      FSBL_TRY(add_value(key, value, one));
    }
    overlay(layer, std::move(one));
  }
  return layer;
}

static void put(std::vector<Entry>& entries, Entry entry) {
  for (Entry& old : entries) {
    if (old.key == entry.key) {
      old.value = std::move(entry.value);
      return;
    }
  }
  entries.push_back(std::move(entry));
}

void overlay(Layer& base, Layer over) {
  const auto drop = [](std::vector<Entry>& entries, const std::string& key) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
  };
  for (Entry& entry : over.values) {
    drop(base.sweeps, entry.key);
    put(base.values, std::move(entry));
  }
  for (Entry& entry : over.sweeps) {
    drop(base.values, entry.key);
    put(base.sweeps, std::move(entry));
  }
}

}  // namespace fsbl
