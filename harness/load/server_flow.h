// The server's half of one flow, without a socket: takes received bytes, says what to send. Pure; the session
// `null` runs it in process. No allocation after construction.
#pragma once
#include <string_view>

#include "harness/load/hello.h"
#include "harness/load/pattern.h"
#include "harness/scenario/model.h"

namespace fsbl {

class ServerFlow {
 public:
  ServerFlow(const Pattern& pattern, const LoadConfig& load) : pattern_(&pattern), load_(load) {}

  // False: the peer broke the protocol or the data was wrong; error() says which.
  bool receive(std::span<const std::byte> data) noexcept;
  void peer_closed() noexcept { closed_ = true; }

  // What to send next, empty when there is nothing now; then took(size) once it was handed over.
  std::span<const std::byte> to_send() noexcept;
  void took(size_t bytes) noexcept;

  bool greeted() const noexcept { return hello_bytes_ == sizeof(Hello); }
  bool ready_sent() const noexcept { return ready_taken_ == sizeof(Ready); }
  bool ended() const noexcept;                  // closed by the peer and nothing left to send
  uint64_t answered() const noexcept { return answered_; }
  uint64_t outstanding() const noexcept { return owed_; }   // requests received whole and not answered whole
  uint32_t flow() const noexcept { return hello_.flow; }
  std::string_view error() const noexcept { return error_; }

 private:
  const Pattern* pattern_;
  LoadConfig load_;
  Hello hello_;
  Ready ready_;
  size_t hello_bytes_ = 0, ready_taken_ = 0;
  Verifier verifier_;
  uint64_t request_bytes_ = 0;                  // of the request being received
  uint64_t owed_ = 0, reply_left_ = 0, send_position_ = 0, answered_ = 0;
  bool closed_ = false;
  std::string_view error_;
};

}  // namespace fsbl
