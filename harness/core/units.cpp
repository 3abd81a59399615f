#include "harness/core/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace fsbl {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kByteUnits = {Unit{"B", 1},       Unit{"KiB", 1024.0},  Unit{"MiB", 1048576.0},
                                   Unit{"GiB", 1073741824.0}, Unit{"kB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9}};
constexpr std::array kTimeUnits = {Unit{"ns", 1},   Unit{"us", 1e3},   Unit{"ms", 1e6},
                                   Unit{"s", 1e9},  Unit{"min", 60e9}, Unit{"h", 3600e9}};

// Splits "64 KiB" into 64 and "KiB".
Expected<std::pair<double, std::string_view>> split(std::string_view text, const std::string& what) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || !std::isfinite(number)) return bad_input(what, "not a number");
  if (number < 0) return bad_input(what, "negative");
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return std::pair(number, unit);
}

template <size_t N>
Expected<double> scale(std::string_view unit, const std::array<Unit, N>& units, const std::string& what,
                       const std::string& known) {
  for (const Unit& candidate : units)
    if (candidate.name == unit) return candidate.factor;
  return bad_input(what, unit.empty() ? "no unit" : fmt::format("unknown unit '{}'", unit), "use one of " + known);
}

}  // namespace

Expected<uint64_t> parse_bytes(std::string_view text) {
  const std::string what = fmt::format("size '{}'", text);
  FSBL_ASSIGN(const auto parts, split(text, what));
  FSBL_ASSIGN(const double factor,
              scale(parts.second.empty() ? "B" : parts.second, kByteUnits, what, "B, KiB, MiB, GiB, kB, MB, GB"));
  const double bytes = parts.first * factor;
  if (bytes > 9e15) return bad_input(what, "too large");
  if (bytes != std::floor(bytes)) return bad_input(what, "not a whole number of bytes");
  return static_cast<uint64_t>(bytes);
}

Expected<Nanos> parse_duration(std::string_view text) {
  const std::string what = fmt::format("duration '{}'", text);
  FSBL_ASSIGN(const auto parts, split(text, what));
  if (parts.second.empty() && parts.first == 0) return Nanos{0};
  FSBL_ASSIGN(const double factor, scale(parts.second, kTimeUnits, what, "ns, us, ms, s, min, h"));
  const double ns = parts.first * factor;
  if (ns > 9e18) return bad_input(what, "too large");
  return static_cast<Nanos>(std::llround(ns));
}

std::string format_bytes(uint64_t bytes) {
  if (bytes >= (1ull << 30) && bytes % (1ull << 30) == 0) return fmt::format("{} GiB", bytes >> 30);
  if (bytes >= (1ull << 20) && bytes % (1ull << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= (1ull << 10) && bytes % (1ull << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

std::string format_duration(Nanos duration) {
  const double ns = static_cast<double>(duration);
  if (std::abs(ns) >= 1e9) return fmt::format("{:.4g} s", ns / 1e9);
  if (std::abs(ns) >= 1e6) return fmt::format("{:.4g} ms", ns / 1e6);
  if (std::abs(ns) >= 1e3) return fmt::format("{:.4g} µs", ns / 1e3);
  return fmt::format("{} ns", duration);
}

}  // namespace fsbl
