#include "harness/core/json.h"

namespace fsbl {

Expected<Json> parse_json(std::string_view text, const std::string& what) {
  try {
    return Json::parse(text);
  } catch (const std::exception& error) {
    return bad_input("read " + what, error.what());
  }
}

std::string dump_json(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string canonical_json(const Json& value) {
  const nlohmann::json sorted = value;  // std::map keeps keys in order
  return sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fsbl
