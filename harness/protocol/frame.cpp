#include "harness/protocol/frame.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "harness/core/cancel.h"
#include "harness/core/units.h"

namespace fsbl {
namespace {

void put_u32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

uint32_t get_u32(std::string_view in, size_t at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(in[at + static_cast<size_t>(i)]);
  return value;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  std::string out;
  out.reserve(kFrameHeaderBytes + frame.payload.size());
  put_u32(out, static_cast<uint32_t>(frame.payload.size()));
  out.push_back(static_cast<char>(frame.kind));
  put_u32(out, frame.id);
  return out + frame.payload;
}

Expected<std::optional<Frame>> FrameParser::next() {
  if (buffer_.size() < kFrameHeaderBytes) return std::nullopt;
  const uint32_t length = get_u32(buffer_, 0);
  const auto kind = static_cast<uint8_t>(buffer_[4]);
  if (kind != 1 && kind != 2) return fault("read a frame", fmt::format("malformed: kind {}", kind));
  if (length > kMaxFrameBytes)
    return fault("read a frame", fmt::format("oversized: {} bytes, the limit is {}", length, kMaxFrameBytes));
  if (buffer_.size() < kFrameHeaderBytes + length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), get_u32(buffer_, 5), buffer_.substr(kFrameHeaderBytes, length)};
  buffer_.erase(0, kFrameHeaderBytes + length);
  return frame;
}

Channel::Channel(int read_fd, int write_fd, std::string peer_name)
    : read_fd_(read_fd), write_fd_(write_fd), peer_(std::move(peer_name)) {
  for (int fd : {read_fd_, write_fd_}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static Expected<> wait_for(int fd, short events, Nanos deadline, const std::string& what, bool cancellable) {
  for (;;) {
    const Nanos left = deadline - mono_now_ns();
    if (left <= 0) return fault(what, "too late: nothing within the time limit");
    pollfd polls[2] = {{fd, events, 0}, {cancellable ? cancel_fd() : -1, POLLIN, 0}};
    const int n = poll(polls, 2, static_cast<int>(std::min<Nanos>(left / 1'000'000 + 1, 1'000'000)));
    if (n < 0 && errno != EINTR) return fault_errno(what, errno);
    if (polls[1].revents) return cancelled(what);
    if (n > 0 && polls[0].revents) return {};
  }
}

Expected<> Channel::send(const Frame& frame, Nanos timeout) {
  const std::string what = "send to " + peer_;
  const std::string bytes = encode_frame(frame);
  const Nanos deadline = mono_now_ns() + timeout;
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t n = ::write(write_fd_, left.data(), left.size());
    if (n > 0) {
      left.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      FSBL_TRY(wait_for(write_fd_, POLLOUT, deadline, what, false));
    } else if (n < 0 && errno != EINTR) {
      return fault(what, errno == EPIPE ? "it is gone" : errno_text(errno));
    }
  }
  return {};
}

Expected<Frame> Channel::receive(Nanos timeout) {
  const std::string what = "wait for " + peer_;
  const Nanos deadline = mono_now_ns() + timeout;
  for (;;) {
    auto parsed = parser_.next();
    if (!parsed) return tl::unexpected(parsed.error().in(what));
    if (*parsed) return std::move(**parsed);
    char chunk[65536];
    const ssize_t n = ::read(read_fd_, chunk, sizeof chunk);
    if (n > 0) {
      parser_.feed({chunk, static_cast<size_t>(n)});
    } else if (n == 0) {
      return fault(what, parser_.empty() ? "end of file: it is gone" : "end of file inside a frame: it is gone");
    } else if (errno == EAGAIN) {
      FSBL_TRY(wait_for(read_fd_, POLLIN, deadline, what, true));
    } else if (errno != EINTR) {
      return fault(what, errno == ECONNRESET ? "it is gone" : errno_text(errno));
    }
  }
}

bool Channel::pending() {
  pollfd ready{read_fd_, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

static const char* kind_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return "bad-input";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::fault: return "fault";
    case ErrorKind::cancelled: return "cancelled";
  }
  return "fault";
}

Json error_to_json(const Error& error) {
  return {{"kind", kind_text(error.kind)}, {"what", error.what}, {"why", error.why}, {"fix", error.fix}};
}

static std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Error error_from_json(const Json& json) {
  Error error{ErrorKind::fault, "?", "malformed error", ""};
  if (!json.is_object()) return error;
  const std::string kind = text_of(json, "kind");
  for (ErrorKind k : {ErrorKind::bad_input, ErrorKind::unavailable, ErrorKind::fault, ErrorKind::cancelled})
    if (kind == kind_text(k)) error.kind = k;
  error.what = text_of(json, "what");
  error.why = text_of(json, "why");
  error.fix = text_of(json, "fix");
  return error;
}

Expected<> send_request(Channel& channel, uint32_t id, Json request, Nanos timeout) {
  return channel.send({FrameKind::json, id, dump_json(request)}, timeout);
}

Expected<Json> receive_reply(Channel& channel, uint32_t id, Nanos timeout) {
  FSBL_ASSIGN(const Frame frame, channel.receive(timeout));
  const std::string what = "reply of " + channel.peer();
  if (frame.kind != FrameKind::json || frame.id != id)
    return fault(what, fmt::format("out of step: got frame {}, expected {}", frame.id, id));
  auto json = parse_json(frame.payload, what);
  if (!json) return fault(what, "malformed: " + json.error().why);
  if (json->is_object() && json->contains("error")) return tl::unexpected(error_from_json((*json)["error"]));
  if (!json->is_object() || !json->contains("ok")) return fault(what, "malformed: neither ok nor error");
  return std::move((*json)["ok"]);
}

Expected<Json> call(Channel& channel, uint32_t id, Json request, Nanos timeout) {
  FSBL_TRY(send_request(channel, id, std::move(request), timeout));
  return receive_reply(channel, id, timeout);
}

Expected<Json> parse_request(const Frame& frame) {
  if (frame.kind != FrameKind::json) return fault("read a request", "malformed: not JSON");
  auto json = parse_json(frame.payload, "a request");
  if (!json) return fault("read a request", "malformed: " + json.error().why);
  if (!json->is_object() || text_of(*json, "op").empty()) return fault("read a request", "malformed: no op");
  return json;
}

Expected<> send_reply(Channel& channel, uint32_t id, const Expected<Json>& result, Nanos timeout) {
  Json reply = Json::object();
  if (result) reply["ok"] = *result;
  else reply["error"] = error_to_json(result.error());
  return channel.send({FrameKind::json, id, dump_json(reply)}, timeout);
}

}  // namespace fsbl
