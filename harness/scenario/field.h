// The kinds of values that a scenario key can have. Each kind reads a value from the file (`read`), from JSON
// (`from_exact`), and writes it both ways: `file_form` as a person would write it ("64KiB"), `exact` as
// integers of bytes or nanoseconds, under the key's name plus kSuffix. Errors leave `what` empty: the caller
// knows the place.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/json.h"
#include "harness/scenario/document.h"
#include "harness/scenario/text.h"

namespace fsbl::field {

// The text of a scalar, or an error that says what was expected instead.
Expected<std::string_view> scalar(const Node& node, std::string_view expected);

struct Bytes {
  static constexpr std::string_view kSuffix = "_bytes";
  static constexpr bool kIsList = false;
  uint64_t min, max;
  Expected<uint64_t> read(const Node& node) const;
  Expected<uint64_t> from_exact(const Json& json) const;
  Json file_form(uint64_t value) const;  // exact: the largest unit that divides it
  Json exact(uint64_t value) const { return value; }
};

struct Duration {
  static constexpr std::string_view kSuffix = "_ns";
  static constexpr bool kIsList = false;
  Nanos min, max;
  Expected<Nanos> read(const Node& node) const;
  Expected<Nanos> from_exact(const Json& json) const;
  Json file_form(Nanos value) const;  // exact: the largest unit up to seconds that divides it
  Json exact(Nanos value) const { return value; }
};

struct Count {
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = false;
  uint64_t min, max;
  Expected<uint64_t> read(const Node& node) const;
  Expected<uint64_t> from_exact(const Json& json) const;
  Json file_form(uint64_t value) const { return value; }
  Json exact(uint64_t value) const { return value; }
};

struct Flag {  // on, off
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = false;
  Expected<bool> read(const Node& node) const;
  Expected<bool> from_exact(const Json& json) const;
  Json file_form(bool value) const { return value ? "on" : "off"; }
  Json exact(bool value) const { return value; }
};

struct Name {  // one of the known words
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = false;
  std::span<const std::string_view> known;
  Expected<std::string> read(const Node& node) const;
  Expected<std::string> from_exact(const Json& json) const;
  Json file_form(const std::string& value) const { return value; }
  Json exact(const std::string& value) const { return value; }
};

template <class Enum, size_t kSize>
struct Choice {  // an enumeration with to_text()
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = false;
  std::array<Enum, kSize> values;
  Expected<Enum> read(const Node& node) const {
    FSBL_ASSIGN(const std::string_view text, scalar(node, "a word"));
    return parse(text);
  }
  Expected<Enum> from_exact(const Json& json) const {
    if (!json.is_string()) return bad_input("", "not text");
    return parse(json.template get_ref<const std::string&>());
  }
  Json file_form(Enum value) const { return to_text(value); }
  Json exact(Enum value) const { return to_text(value); }

 private:
  Expected<Enum> parse(std::string_view text) const {
    std::array<std::string_view, kSize> known;
    for (size_t i = 0; i < kSize; ++i) {
      known[i] = to_text(values[i]);
      if (known[i] == text) return values[i];
    }
    return bad_input("", "unknown value " + quote(text), suggestion(text, known));
  }
};
template <class Enum, class... More>
Choice(Enum, More...) -> Choice<Enum, 1 + sizeof...(More)>;

struct Text {
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = false;
  size_t max_bytes;
  Expected<std::string> read(const Node& node) const;
  Expected<std::string> from_exact(const Json& json) const;
  Json file_form(const std::string& value) const { return value; }
  Json exact(const std::string& value) const { return value; }
};

struct Cpus {  // list of CPU numbers, none twice
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = true;
  size_t min_items;
  Expected<std::vector<int>> read(const Node& node) const;
  Expected<std::vector<int>> from_exact(const Json& json) const;
  Json file_form(const std::vector<int>& value) const { return value; }
  Json exact(const std::vector<int>& value) const { return value; }
};

struct Names {  // list of known words, none twice
  static constexpr std::string_view kSuffix = "";
  static constexpr bool kIsList = true;
  std::span<const std::string_view> known;
  Expected<std::vector<std::string>> read(const Node& node) const;
  Expected<std::vector<std::string>> from_exact(const Json& json) const;
  Json file_form(const std::vector<std::string>& value) const { return value; }
  Json exact(const std::vector<std::string>& value) const { return value; }
};

// A map of text by name; each name is checked as what it will be used for.
enum class MapNames { sysctl, environment };
struct TextMap {
  MapNames names;
  Text value{4096};
  Expected<> check_name(std::string_view name) const;
};

}  // namespace fsbl::field
