// Errors as values: what failed, on what, why, and what to do. Thread-safe (plain data).
#pragma once
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fsbl {

enum class ErrorKind {
  bad_input,    // usage, scenario, or result file: exit 2
  unavailable,  // this host can't: exit 4
  fault,        // internal, testbed or invalid-round failure: exit 5
  cancelled,    // Ctrl-C or a stop request: exit 130
};

struct Error {
  ErrorKind kind = ErrorKind::fault;
  std::string what;  // the action and its object: "attach xdp to eth1"
  std::string why;   // the cause: "EOPNOTSUPP: driver lacks native mode"
  std::string fix;   // what to do, may be empty: "use mode: generic"

  // "what: why; fix"
  std::string message() const;
  // The same error, seen from one level up: "outer: what: why; fix".
  Error in(const std::string& outer) const;
};

template <class T = void>
using Expected = tl::expected<T, Error>;

tl::unexpected<Error> bad_input(std::string what, std::string why, std::string fix = {});
tl::unexpected<Error> unavailable(std::string what, std::string why, std::string fix = {});
tl::unexpected<Error> fault(std::string what, std::string why, std::string fix = {});
tl::unexpected<Error> cancelled(std::string what);
// A fault (EPERM/EACCES: unavailable) from errno, e.g. "ENOENT: No such file or directory".
tl::unexpected<Error> fault_errno(std::string what, int error_number, std::string fix = {});
std::string errno_text(int error_number);

// Exit status of the command line for an error (DESIGN.md, "The command line").
int exit_code(ErrorKind kind);

// Return the error of `expression`, or go on.
#define FSBL_TRY(expression)                                                        \
  do {                                                                              \
    if (auto fsbl_try_ = (expression); !fsbl_try_)                                  \
      return tl::unexpected<::fsbl::Error>(std::move(fsbl_try_).error());           \
  } while (0)
#define FSBL_CONCAT_(a, b) a##b
#define FSBL_CONCAT(a, b) FSBL_CONCAT_(a, b)
// FSBL_ASSIGN(auto x, expression): bind the value, or return the error.
#define FSBL_ASSIGN(declaration, expression)                                        \
  auto FSBL_CONCAT(fsbl_value_, __LINE__) = (expression);                           \
  if (!FSBL_CONCAT(fsbl_value_, __LINE__))                                          \
    return tl::unexpected<::fsbl::Error>(std::move(FSBL_CONCAT(fsbl_value_, __LINE__)).error()); \
  declaration = std::move(*FSBL_CONCAT(fsbl_value_, __LINE__))

}  // namespace fsbl
