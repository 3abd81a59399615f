// How messages quote what a user wrote, and what they suggest instead. Pure.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace fsbl {

// 'text' for a message: long text is cut, control characters are replaced.
std::string quote(std::string_view text);
// "nearest: 'x'" when a known name is close to what was written, otherwise "known: a, b, c".
std::string suggestion(std::string_view written, std::span<const std::string_view> known);
// Edits (insert, delete, replace, swap of neighbours) between two words.
size_t edit_distance(std::string_view a, std::string_view b);

// Index of the first byte that is not part of valid UTF-8 or is a control character other than tab, line feed
// and carriage return; npos when there is none.
size_t find_bad_text(std::string_view text);
// Non-empty, starts with a letter or digit, and holds only those and the characters of `others`.
bool is_word(std::string_view text, std::string_view others, size_t max_length);

}  // namespace fsbl
