#include "harness/scenario/model.h"

namespace fsbl {

std::string_view to_text(Shape shape) {
  return shape == Shape::request_response ? "request-response" : "stream";
}
std::string_view to_text(Direction direction) {
  return direction == Direction::up ? "up" : "down";
}
std::string_view to_text(WaitMode wait) {
  return wait == WaitMode::block ? "block" : "busy";
}
std::string_view to_text(Verify verify) {
  return verify == Verify::sampled ? "sampled" : "full";
}
std::string_view to_text(KeyType key) {
  return key == KeyType::p256 ? "p256" : "ed25519";
}
std::string_view to_text(Role role) {
  return role == Role::client ? "client" : "server";
}

}  // namespace fsbl
