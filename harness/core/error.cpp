#include "harness/core/error.h"

#include <cerrno>

namespace fsbl {

std::string Error::message() const {
  std::string text = what;
  if (!why.empty()) text += (text.empty() ? "" : ": ") + why;
  if (!fix.empty()) text += "; " + fix;
  return text;
}

Error Error::in(const std::string& outer) const { return {kind, outer + ": " + what, why, fix}; }

static tl::unexpected<Error> make(ErrorKind kind, std::string&& what, std::string&& why, std::string&& fix) {
  return tl::unexpected<Error>(Error{kind, std::move(what), std::move(why), std::move(fix)});
}

tl::unexpected<Error> bad_input(std::string what, std::string why, std::string fix) {
  return make(ErrorKind::bad_input, std::move(what), std::move(why), std::move(fix));
}
tl::unexpected<Error> unavailable(std::string what, std::string why, std::string fix) {
  return make(ErrorKind::unavailable, std::move(what), std::move(why), std::move(fix));
}
tl::unexpected<Error> fault(std::string what, std::string why, std::string fix) {
  return make(ErrorKind::fault, std::move(what), std::move(why), std::move(fix));
}
tl::unexpected<Error> cancelled(std::string what) {
  return make(ErrorKind::cancelled, std::move(what), "cancelled", {});
}

std::string errno_text(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* text = strerrordesc_np(error_number);
  return std::string(name ? name : "errno " + std::to_string(error_number)) + (text ? std::string(": ") + text : "");
}

tl::unexpected<Error> fault_errno(std::string what, int error_number, std::string fix) {
  const bool denied = error_number == EPERM || error_number == EACCES;
  return make(denied ? ErrorKind::unavailable : ErrorKind::fault, std::move(what), errno_text(error_number),
              std::move(fix));
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return 2;
    case ErrorKind::unavailable: return 4;
    case ErrorKind::fault: return 5;
    case ErrorKind::cancelled: return 130;
  }
  return 5;
}

}  // namespace fsbl
