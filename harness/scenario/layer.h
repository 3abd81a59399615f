// What a file, a profile, --set or --arm says: settings by dotted key, and the keys that are swept.
// Everything in a layer has been checked, one value at a time. A key is either set or swept, never both.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/document.h"
#include "harness/scenario/model.h"

namespace fsbl {

struct Entry {
  std::string key;
  Node value;
};

struct Layer {
  std::vector<Entry> values;  // in the order they were written
  std::vector<Entry> sweeps;  // the value is a list; the last one varies fastest
};

// The keys of a scenario that configure the run instead of a cell.
enum class RunKeys {
  all,     // a file: id title description seed repetitions transports
  change,  // a profile and --set: seed repetitions transports
  none,    // an arm
};

// From a map in a file, which may hold `matrix` too; a file's `profiles` are not looked at.
Expected<Layer> layer_of(const Node& map, RunKeys run_keys);
// From "key=value" words. `option` is how errors begin: "--set " or "--arm NAME:". Several values for a
// scalar key
// ("load.streams=1,10") sweep it, unless this is an arm.
Expected<Layer> layer_of(std::span<const std::string> words, const std::string& option, RunKeys run_keys);
// What `over` sets or sweeps replaces what `base` did with that key.
void overlay(Layer& base, Layer over);

const Node* find(const std::vector<Entry>& entries, std::string_view key);

// The list under `transports`: preset names and {tunnel, session, engine, name}.
Expected<std::vector<Composition>> read_transports(const Node& list);
// The seed or the repetitions.
Expected<uint64_t> read_run_number(std::string_view key, const Node& value);

}  // namespace fsbl
