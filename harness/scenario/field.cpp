#include "harness/scenario/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/core/units.h"

namespace fsbl::field {
namespace {

constexpr uint64_t kMaxCpu = 1023;  // CPU_SETSIZE - 1

tl::unexpected<Error> outside(std::string_view text, const std::string& min, const std::string& max) {
  return bad_input("", fmt::format("{} is outside {}..{}", text, min, max));
}

std::string compact(std::string text) {
  std::erase(text, ' ');
  return text;
}

std::string compact_duration(Nanos value) {
  if (value % 1'000'000'000 == 0) return fmt::format("{}s", value / 1'000'000'000);
  if (value % 1'000'000 == 0) return fmt::format("{}ms", value / 1'000'000);
  if (value % 1'000 == 0) return fmt::format("{}us", value / 1'000);
  return fmt::format("{}ns", value);
}

// YAML readers disagree about numbers like 010 (eight or ten), so such are refused.
bool has_leading_zero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

Expected<uint64_t> whole_number(const Node& node) {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "a whole number"));
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (node.is_quoted || status == std::errc::invalid_argument || end != text.data() + text.size() ||
      has_leading_zero(text))
    return bad_input("", quote(text) + " is not a whole number");
  if (status != std::errc{}) return bad_input("", quote(text) + " is too large");
  return value;
}

Expected<uint64_t> whole_number(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (json.is_number_integer() && json.get<int64_t>() >= 0) return static_cast<uint64_t>(json.get<int64_t>());
  return bad_input("", "not a whole number");
}

Expected<uint64_t> within(uint64_t value, uint64_t min, uint64_t max) {
  if (value < min || value > max)
    return outside(std::to_string(value), std::to_string(min), std::to_string(max));
  return value;
}

Expected<std::string> one_of(std::string_view text, std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), text) == known.end())
    return bad_input("", "unknown value " + quote(text), suggestion(text, known));
  return std::string(text);
}

Expected<std::string> json_text(const Json& json) {
  if (!json.is_string()) return bad_input("", "not text");
  return json.get<std::string>();
}

tl::unexpected<Error> at_item(const Node& item, const Error& error) {
  return bad_input(item.where, error.why, error.fix);
}
tl::unexpected<Error> at_item(const Json&, const Error& error) {
  return tl::unexpected<Error>(error);
}

// Reads every item of a file's or a JSON list with `read_item`, refusing one that stands twice.
template <class T, class Items, class ReadItem>
Expected<std::vector<T>> unique_list(const Items& items, const ReadItem& read_item) {
  std::vector<T> list;
  for (const auto& item : items) {
    Expected<T> value = read_item(item);
    if (value && std::find(list.begin(), list.end(), *value) != list.end())
      value = bad_input("", fmt::format("{} stands twice", *value));
    if (!value) return at_item(item, value.error());
    list.push_back(std::move(*value));
  }
  return list;
}

Expected<> is_list(const Node& node) {
  if (node.kind == Node::Kind::list) return {};
  return bad_input("", fmt::format("{} where a list is expected", kind_text(node.kind)));
}

Expected<> is_list(const Json& json) {
  if (json.is_array()) return {};
  return bad_input("", "not a list");
}

template <class Source>
Expected<std::vector<int>> cpu_list(const Source& source, const auto& items, size_t min_items) {
  FSBL_TRY(is_list(source));
  if (items.size() < min_items) return bad_input("", fmt::format("needs at least {} CPU", min_items));
  return unique_list<int>(items, [](const Source& item) -> Expected<int> {
    FSBL_ASSIGN(const uint64_t number, whole_number(item));
    FSBL_ASSIGN(const uint64_t cpu, within(number, 0, kMaxCpu));
    return static_cast<int>(cpu);
  });
}

}  // namespace

Expected<std::string_view> scalar(const Node& node, std::string_view expected) {
  if (node.kind == Node::Kind::scalar) return std::string_view(node.text);
  return bad_input("", fmt::format("{} where {} is expected", kind_text(node.kind), expected));
}

Expected<uint64_t> Bytes::read(const Node& node) const {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "a size"));
  if (has_leading_zero(text)) return bad_input("", quote(text) + " is not a size");
  auto bytes = parse_bytes(text);
  if (!bytes) return bad_input("", quote(text) + ": " + bytes.error().why, bytes.error().fix);
  if (*bytes < min || *bytes > max)
    return outside(text, compact(format_bytes(min)), compact(format_bytes(max)));
  return *bytes;
}
Expected<uint64_t> Bytes::from_exact(const Json& json) const {
  FSBL_ASSIGN(const uint64_t value, whole_number(json));
  return within(value, min, max);
}
Json Bytes::file_form(uint64_t value) const {
  return compact(format_bytes(value));
}

Expected<Nanos> Duration::read(const Node& node) const {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "a duration"));
  auto duration = parse_duration(text);
  if (!duration) return bad_input("", quote(text) + ": " + duration.error().why, duration.error().fix);
  if (*duration < min || *duration > max) return outside(text, compact_duration(min), compact_duration(max));
  return *duration;
}
Expected<Nanos> Duration::from_exact(const Json& json) const {
  FSBL_ASSIGN(const uint64_t value, whole_number(json));
  FSBL_ASSIGN(const uint64_t inside, within(value, static_cast<uint64_t>(min), static_cast<uint64_t>(max)));
  return static_cast<Nanos>(inside);
}
Json Duration::file_form(Nanos value) const {
  return compact_duration(value);
}

Expected<uint64_t> Count::read(const Node& node) const {
  FSBL_ASSIGN(const uint64_t value, whole_number(node));
  return within(value, min, max);
}
Expected<uint64_t> Count::from_exact(const Json& json) const {
  FSBL_ASSIGN(const uint64_t value, whole_number(json));
  return within(value, min, max);
}

Expected<bool> Flag::read(const Node& node) const {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "on or off"));
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  return bad_input("", quote(text) + " is neither on nor off");
}
Expected<bool> Flag::from_exact(const Json& json) const {
  if (!json.is_boolean()) return bad_input("", "not a boolean");
  return json.get<bool>();
}

Expected<std::string> Name::read(const Node& node) const {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "a word"));
  return one_of(text, known);
}
Expected<std::string> Name::from_exact(const Json& json) const {
  FSBL_ASSIGN(const std::string text, json_text(json));
  return one_of(text, known);
}

Expected<std::string> Text::read(const Node& node) const {
  FSBL_ASSIGN(const std::string_view text, scalar(node, "text"));
  return from_exact(Json(text));
}
Expected<std::string> Text::from_exact(const Json& json) const {
  FSBL_ASSIGN(std::string text, json_text(json));
  if (text.size() > max_bytes) return bad_input("", fmt::format("longer than {} bytes", max_bytes));
  if (find_bad_text(text) != std::string::npos)
    return bad_input("", quote(text) + " holds control characters");
  return text;
}

Expected<std::vector<int>> Cpus::read(const Node& node) const {
  return cpu_list(node, node.items, min_items);
}
Expected<std::vector<int>> Cpus::from_exact(const Json& json) const {
  return cpu_list(json, json, min_items);
}

Expected<std::vector<std::string>> Names::read(const Node& node) const {
  FSBL_TRY(is_list(node));
  return unique_list<std::string>(node.items, [this](const Node& item) { return Name{known}.read(item); });
}
Expected<std::vector<std::string>> Names::from_exact(const Json& json) const {
  FSBL_TRY(is_list(json));
  return unique_list<std::string>(json, [this](const Json& item) { return Name{known}.from_exact(item); });
}

Expected<> TextMap::check_name(std::string_view name) const {
  switch (names) {
    case MapNames::sysctl:
      if (!name.starts_with("net."))
        return bad_input("", quote(name) + " is not a sysctl of a network namespace",
                         "those start with net.");
      if (!is_word(name, "._-", 128) || name.find("..") != std::string_view::npos || name.ends_with('.'))
        return bad_input("", quote(name) + " is not a sysctl name");
      return {};
    case MapNames::environment:
      if (!is_word(name.starts_with('_') ? name.substr(1) : name, "_", 128) ||
          (name[0] >= '0' && name[0] <= '9'))
        return bad_input("", quote(name) + " is not a name of an environment variable");
      return {};
  }
  return {};
}

}  // namespace fsbl::field
