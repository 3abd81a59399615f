// Frames between fsbl, its agents and their workers: {u32 length, u8 kind, u32 id} little-endian, then `length` bytes.
// The same bytes travel over a socket pair, SSH's stdio or a virtual serial port.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/json.h"

namespace fsbl {

enum class FrameKind : uint8_t { json = 1, blob = 2 };

struct Frame {
  FrameKind kind = FrameKind::json;
  uint32_t id = 0;        // a reply carries its request's id
  std::string payload;
};

inline constexpr size_t kFrameHeaderBytes = 9;
inline constexpr size_t kMaxFrameBytes = 64u << 20;

std::string encode_frame(const Frame& frame);

// Splits a byte stream into frames. A malformed or oversized frame is an error for good: the stream can't be
// trusted to be in step any more. Pure; the fuzz target feeds it.
class FrameParser {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, nullopt when more bytes are needed.
  Expected<std::optional<Frame>> next();
  bool empty() const { return buffer_.empty(); }   // no half frame pending

 private:
  std::string buffer_;
};

// A frame channel over two descriptors (not owned; they may be the same). One thread.
class Channel {
 public:
  Channel(int read_fd, int write_fd, std::string peer_name);

  Expected<> send(const Frame& frame, Nanos timeout);
  // Waits for one frame. Errors: "no answer within ...", "end of file", a malformed frame, a stop request (Ctrl-C).
  Expected<Frame> receive(Nanos timeout);
  // True when a whole frame or end of file can be taken without waiting.
  bool pending();
  int read_fd() const { return read_fd_; }
  const std::string& peer() const { return peer_; }

 private:
  int read_fd_, write_fd_;
  std::string peer_;
  FrameParser parser_;
};

// --- requests and replies: JSON frames {"op": ...} → {"ok": ...} or {"error": {kind, what, why, fix}} ---

inline constexpr int kProtocolVersion = 1;

Json error_to_json(const Error& error);
Error error_from_json(const Json& json);

Expected<> send_request(Channel& channel, uint32_t id, Json request, Nanos timeout);
// Waits for the reply to `id`; a reply to something else is a fault.
Expected<Json> receive_reply(Channel& channel, uint32_t id, Nanos timeout);
Expected<Json> call(Channel& channel, uint32_t id, Json request, Nanos timeout);
// Takes a request: the frame must be JSON with a string "op".
Expected<Json> parse_request(const Frame& frame);
Expected<> send_reply(Channel& channel, uint32_t id, const Expected<Json>& result, Nanos timeout);

}  // namespace fsbl
