#include "harness/scenario/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace fsbl {
namespace {

constexpr size_t kMaxQuoted = 60;  // bytes of user text that a message repeats

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Length of the valid UTF-8 character at the start of `text`, 0 when there is none (RFC 3629, table 3-7 of
// Unicode).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string shown = "'";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (shown.size() + length > kMaxQuoted) {
      shown += "…";
      break;
    }
    const bool printable = length > 1 || (length == 1 && text[0] >= ' ' && text[0] != 0x7f);
    shown += printable ? text.substr(0, length) : "?";
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown + "'";
}

size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment, three rows: two back, previous, current.
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string suggestion(std::string_view written, std::span<const std::string_view> known) {
  std::string_view nearest;
  size_t least = written.size() / 2 + 1;  // half the word may be wrong
  if (written.size() <= kMaxQuoted) {
    for (const std::string_view name : known) {
      if (const size_t distance = edit_distance(written, name); distance < least) {
        least = distance;
        nearest = name;
      }
    }
  }
  if (!nearest.empty()) return fmt::format("nearest: '{}'", nearest);
  return fmt::format("known: {}", fmt::join(known, ", "));
}

size_t find_bad_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    const char c = text[i];
    const bool control = length == 1 && ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f);
    if (length == 0 || control) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool is_word(std::string_view text, std::string_view others, size_t max_length) {
  if (text.empty() || text.size() > max_length || !is_alphanumeric(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alphanumeric(c) || others.find(c) != std::string_view::npos; });
}

}  // namespace fsbl
