#include "harness/load/server_flow.h"

namespace fsbl {

bool ServerFlow::receive(std::span<const std::byte> data) noexcept {
  if (!greeted()) {
    const size_t n = std::min(data.size(), sizeof(Hello) - hello_bytes_);
    std::memcpy(reinterpret_cast<std::byte*>(&hello_) + hello_bytes_, data.data(), n);
    hello_bytes_ += n;
    data = data.subspan(n);
    if (!greeted()) return true;
    if (!is_valid(hello_)) {
      error_ = "the peer is not an fsbl worker of this protocol version";
      return false;
    }
    ready_.flow = hello_.flow;
    ready_.canary = hello_.canary;
    verifier_ = Verifier(*pattern_, Pattern::start_of(hello_.flow, Role::client), load_.verify);
    send_position_ = Pattern::start_of(hello_.flow, Role::server);
  }
  if (data.empty()) return true;
  if (!verifier_.take(data)) {
    error_ = "received bytes differ from those sent";
    return false;
  }
  if (load_.shape == Shape::request_response) {
    request_bytes_ += data.size();
    owed_ += request_bytes_ / load_.payload_bytes;
    request_bytes_ %= load_.payload_bytes;
  }
  return true;
}

std::span<const std::byte> ServerFlow::to_send() noexcept {
  if (!greeted() || !error_.empty()) return {};
  if (!ready_sent()) return bytes_of(ready_).subspan(ready_taken_);
  if (load_.shape == Shape::stream) {
    if (load_.direction == Direction::up || closed_) return {};
    return pattern_->at(send_position_, load_.payload_bytes);
  }
  if (reply_left_ == 0 && owed_ > 0) reply_left_ = load_.reply_bytes;
  return pattern_->at(send_position_, reply_left_);
}

void ServerFlow::took(size_t bytes) noexcept {
  if (!ready_sent()) {
    ready_taken_ += bytes;
    return;
  }
  send_position_ += bytes;
  if (load_.shape == Shape::stream) return;
  reply_left_ -= bytes;
  if (reply_left_ == 0) {
    --owed_;
    ++answered_;
  }
}

bool ServerFlow::ended() const noexcept {
  return closed_ && (load_.shape == Shape::stream || owed_ == 0) && (!greeted() || ready_sent());
}

}  // namespace fsbl
