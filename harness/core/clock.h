// Clocks. CLOCK_MONOTONIC is the common base of every fine time in fsbl (METHOD.md, "Time").
#pragma once
#include <time.h>

#include <cstdint>
#include <string>

namespace fsbl {

using Nanos = int64_t;  // nanoseconds, a duration or a CLOCK_MONOTONIC time

inline Nanos mono_now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Nanos{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Wall-clock time in RFC 3339, UTC, milliseconds: "2026-11-30T20:49:42.123Z".
std::string utc_now();
// For folder names: "20261130T204942Z".
std::string utc_now_compact();

}  // namespace fsbl
