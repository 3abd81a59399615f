// The one JSON type of fsbl; keys keep the order in which they were written.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/core/error.h"

namespace fsbl {

using Json = nlohmann::ordered_json;

// Parses text; a syntax error is bad_input naming `what`. Never throws.
Expected<Json> parse_json(std::string_view text, const std::string& what);
// Compact dump; invalid UTF-8 is replaced, never thrown on.
std::string dump_json(const Json& value);
// Dump with sorted keys and no white space: what digests are taken over.
std::string canonical_json(const Json& value);

}  // namespace fsbl
