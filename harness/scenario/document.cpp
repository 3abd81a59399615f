#include "harness/scenario/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "harness/scenario/text.h"

namespace fsbl {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxNodes = 10'000;

// Thrown through yaml-cpp by the builder, caught in parse_document().
struct Refused {
  Error error;
};

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& name) : name_(name) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "more than one document in the file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, "", anchor)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(mark, tag, anchor);
    node.kind = Node::Kind::scalar;
    node.text = value;
    node.is_quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {  // a list or map that is being read
    Node node;
    Member pending;  // map: the key that waits for its value
    bool has_key = false;
    std::unordered_set<std::string> keys;
  };

  std::string where(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", name_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string why, std::string fix = {}) const {
    throw Refused{{ErrorKind::bad_input, where(mark), std::move(why), std::move(fix)}};
  }
  [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
    refuse(mark, "anchors and aliases are not accepted", "repeat the value");
  }

  // yaml-cpp's tags: "" or "?" for what is plain, "!" for what is quoted.
  Node make(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags are not accepted");
    if (++nodes_ > kMaxNodes) refuse(mark, fmt::format("more than {} values in the file", kMaxNodes));
    Node node;
    node.where = where(mark);
    return node;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    if (stack_.size() >= kMaxDepth) refuse(mark, fmt::format("nested deeper than {} levels", kMaxDepth));
    Open opened{.node = make(mark, tag, anchor)};
    opened.node.kind = kind;
    if (awaits_key()) refuse(mark, fmt::format("{} as a key; keys are plain text", kind_text(kind)));
    stack_.push_back(std::move(opened));
  }
  void close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  bool awaits_key() const {
    return !stack_.empty() && stack_.back().node.kind == Node::Kind::map && !stack_.back().has_key;
  }
  void add(Node&& node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = stack_.back();
    if (top.node.kind == Node::Kind::list) {
      top.node.items.push_back(std::move(node));
    } else if (!top.has_key) {
      if (node.kind != Node::Kind::scalar)
        throw Refused{{ErrorKind::bad_input, node.where, "a key is empty", {}}};
      if (!top.keys.insert(node.text).second)
        throw Refused{{ErrorKind::bad_input, node.where, "key " + quote(node.text) + " stands twice", {}}};
      top.pending.key = std::move(node.text);
      top.pending.where = std::move(node.where);
      top.has_key = true;
    } else {
      if (node.kind == Node::Kind::null)
        node.where = top.pending.where;  // yaml-cpp's mark is that of what follows
      top.pending.value = std::move(node);
      top.node.members.push_back(std::exchange(top.pending, {}));
      top.has_key = false;
    }
  }

  std::string name_;
  Node root_;
  std::vector<Open> stack_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

Expected<> check_bytes(const std::string& yaml, const std::string& name) {
  if (yaml.size() > kMaxDocumentBytes)
    return bad_input(name, fmt::format("larger than {} bytes", kMaxDocumentBytes));
  const size_t bad = find_bad_text(yaml);
  if (bad == std::string::npos) return {};
  const auto before = yaml.begin() + static_cast<ptrdiff_t>(bad);
  const size_t line_start = yaml.rfind('\n', bad);
  return bad_input(fmt::format("{}:{}:{}", name, std::count(yaml.begin(), before, '\n') + 1,
                               line_start == std::string::npos ? bad + 1 : bad - line_start),
                   fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(yaml[bad])));
}

}  // namespace

Expected<Node> parse_document(const std::string& yaml, const std::string& name) {
  FSBL_TRY(check_bytes(yaml, name));
  try {
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    Builder builder(name);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (Refused& refused) {
    return tl::unexpected<Error>(std::move(refused.error));
  } catch (const YAML::Exception& error) {
    const std::string where = error.mark.is_null()
                                  ? name
                                  : fmt::format("{}:{}:{}", name, error.mark.line + 1, error.mark.column + 1);
    return bad_input(where, "not YAML: " + error.msg);
  } catch (const std::exception& error) {
    return bad_input(name, std::string("not YAML: ") + error.what());
  }
}

std::string_view kind_text(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a value";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "";
}

const Node* find(const Node& map, std::string_view key) {
  for (const Member& member : map.members)
    if (member.key == key) return &member.value;
  return nullptr;
}

}  // namespace fsbl
