#include "harness/core/clock.h"

#include <fmt/format.h>

namespace fsbl {

static std::string format_utc(const char* pattern, int& milliseconds) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts;
  gmtime_r(&now.tv_sec, &parts);
  char text[64];
  strftime(text, sizeof text, pattern, &parts);
  milliseconds = static_cast<int>(now.tv_nsec / 1'000'000);
  return text;
}

std::string utc_now() {
  int ms = 0;
  std::string text = format_utc("%Y-%m-%dT%H:%M:%S", ms);
  return fmt::format("{}.{:03}Z", text, ms);
}

std::string utc_now_compact() {
  int ms = 0;
  return format_utc("%Y%m%dT%H%M%SZ", ms);
}

}  // namespace fsbl
