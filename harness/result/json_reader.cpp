#include "harness/result/json_reader.h"

#include <limits>

namespace fsbl {
namespace {
const Json kNothing;
const Json kEmptyObject = Json::object();
}  // namespace

std::optional<JsonReader> JsonReader::find(std::string_view member) const {
  if (!json_->is_object()) {
    if (!json_->is_null()) fail("not an object");
    return std::nullopt;
  }
  const auto found = json_->find(std::string(member));
  if (found == json_->end()) return std::nullopt;
  return at(*found, (path_.empty() ? "" : ".") + std::string(member));
}

JsonReader JsonReader::operator[](std::string_view member) const {
  if (auto found = find(member)) return *found;
  const JsonReader missing = at(kNothing, (path_.empty() ? "" : ".") + std::string(member));
  missing.fail("missing");
  return missing;
}

std::string JsonReader::text() const {
  if (json_->is_string()) return json_->get<std::string>();
  fail("not a text");
  return {};
}

std::string JsonReader::text_or_empty(std::string_view member) const {
  const auto found = find(member);
  return found ? found->text() : std::string();
}

double JsonReader::number() const {
  if (json_->is_number()) return json_->get<double>();
  fail("not a number");
  return 0;
}

uint64_t JsonReader::count() const {
  if (json_->is_number_unsigned()) return json_->get<uint64_t>();
  if (json_->is_number_integer() && json_->get<int64_t>() >= 0) return json_->get<uint64_t>();
  fail("not a whole number >= 0");
  return 0;
}

int JsonReader::integer() const {
  const uint64_t value = count();
  if (value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  fail("too large");
  return 0;
}

bool JsonReader::boolean() const {
  if (json_->is_boolean()) return json_->get<bool>();
  fail("neither true nor false");
  return false;
}

const Json& JsonReader::object() const {
  if (json_->is_object()) return *json_;
  fail("not an object");
  return kEmptyObject;
}

void JsonReader::fail(std::string_view why) const {
  if (!failure_->why) failure_->why = (path_.empty() ? "" : path_ + ": ") + std::string(why);
}

}  // namespace fsbl
