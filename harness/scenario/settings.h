// One setting of a cell's configuration by its dotted key: what files, profiles, --set, --arm and matrices
// all come down to.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/document.h"
#include "harness/scenario/model.h"

namespace fsbl {

enum class KeyKind {
  scalar,   // load.payload
  list,     // placement.client
  map,      // testbed.sysctls.client: its settings are testbed.sysctls.client.<name>
  section,  // load: not a setting, but what settings stand in
  unknown,
};
// A key below a map is a scalar.
KeyKind key_kind(std::string_view key);
// The names that may stand in a section ("" is the top), or every dotted key.
std::vector<std::string_view> keys_in(std::string_view section);
std::vector<std::string_view> dotted_keys();

// The configuration when nothing is set.
CellConfig default_config();
// Sets `key` (a scalar or list) to what the node says. Errors name the node's place and the key.
Expected<> set(CellConfig& config, std::string_view key, const Node& value);
// What can't be true of two keys together. `keys`: the likeliest to blame first.
struct Contradiction {
  std::vector<std::string> keys;
  std::string why, fix;
};
std::optional<Contradiction> contradiction(const CellConfig& config);

// A scalar setting as it would be written in a file ("64KiB"), in one way whatever way was used; null and
// empty when it is not set.
Json file_value(const CellConfig& config, std::string_view key);
std::string file_text(const CellConfig& config, std::string_view key);
// A scalar setting as a factor: {"testbed.offloads.tso", false}, {"phases.measure_ns", 1000000000}.
std::pair<std::string, Json> factor(const CellConfig& config, std::string_view key);
// Everything that is set, in the file's form and nesting (without transport), but for the keys in `except`.
Json file_form(const CellConfig& config, const std::vector<std::string>& except);

}  // namespace fsbl
