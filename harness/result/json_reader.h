// Strict reading of a JSON document without exceptions: each reader knows its place ("rounds[3].cell"). The
// first thing that is wrong is kept in the shared Failure; from then on readers give defaults, so that code
// which reads a whole structure needs one check at its end.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "harness/core/json.h"

namespace fsbl {

class JsonReader {
 public:
  struct Failure {
    std::optional<std::string> why;  // "rounds[3].cell: missing"
  };

  // Both arguments must outlive the reader.
  JsonReader(const Json& json, Failure& failure) : json_(&json), failure_(&failure) {}

  JsonReader operator[](std::string_view member) const;           // a failure when missing
  std::optional<JsonReader> find(std::string_view member) const;  // nullopt when missing
  template <class F>
  void each(F&& visit) const {  // elements of an array
    if (!json_->is_array()) return fail("not an array");
    for (size_t i = 0; i < json_->size(); ++i) visit(at((*json_)[i], "[" + std::to_string(i) + "]"));
  }
  template <class F>
  void each_member(F&& visit) const {  // (name, reader)
    if (!json_->is_object()) return fail("not an object");
    for (const auto& [name, value] : json_->items()) visit(name, at(value, "." + name));
  }

  std::string text() const;
  std::string text_or_empty(std::string_view member) const;
  double number() const;
  uint64_t count() const;  // a whole number >= 0
  int integer() const;
  bool boolean() const;
  const Json& any() const { return *json_; }
  const Json& object() const;
  bool is_null() const { return json_->is_null(); }
  // The value that belongs to the text, e.g. of an enum.
  template <class T>
  T one_of(std::initializer_list<std::pair<std::string_view, T>> choices) const {
    const std::string found = text();
    for (const auto& [name, value] : choices)
      if (name == found) return value;
    fail("unknown value '" + found + "'");
    return choices.begin()->second;
  }

  void fail(std::string_view why) const;

 private:
  JsonReader(const Json& json, Failure& failure, std::string path)
      : json_(&json), failure_(&failure), path_(std::move(path)) {}
  JsonReader at(const Json& json, const std::string& step) const { return {json, *failure_, path_ + step}; }

  const Json* json_;
  Failure* failure_;
  std::string path_;
};

}  // namespace fsbl
