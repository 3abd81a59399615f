// Quantities as people write them ("64KiB", "0.5s", "10Mbit/s") and as tables print them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/core/clock.h"
#include "harness/core/error.h"

namespace fsbl {

// Bytes: a number with B, KiB, MiB, GiB (binary) or kB, MB, GB (decimal); a bare integer is bytes.
Expected<uint64_t> parse_bytes(std::string_view text);
// Durations: a number with ns, us, ms, s, min or h. A bare number (but 0) is refused: its unit would be a guess.
Expected<Nanos> parse_duration(std::string_view text);

std::string format_bytes(uint64_t bytes);     // "64 KiB", "1 MiB", "100 B"
std::string format_duration(Nanos duration);  // "1.5 s", "120 ms", "3 µs"

}  // namespace fsbl
