// A YAML document as plain data that remembers where each value stood. Bounded: 1 MiB, 16 levels, 10 000
// values, one document, no anchors, aliases or tags, no key twice. Nothing here knows what the keys mean.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"

namespace fsbl {

inline constexpr size_t kMaxDocumentBytes = 1 << 20;

struct Member;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string where;            // "file:12:5", or "--set load.payload=64KiB"
  std::string text;             // scalar
  bool is_quoted = false;       // scalar written in quotes: text, never a number
  std::vector<Node> items;      // list
  std::vector<Member> members;  // map, in the order of the file
};

struct Member {
  std::string key;
  std::string where;  // of the key
  Node value;
};

// Never throws. `name` is how errors call the file.
Expected<Node> parse_document(const std::string& yaml, const std::string& name);

// "a list", "a map", "nothing" or "a value", for messages.
std::string_view kind_text(Node::Kind kind);
const Node* find(const Node& map, std::string_view key);

}  // namespace fsbl
