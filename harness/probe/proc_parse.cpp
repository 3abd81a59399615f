#include "harness/probe/proc_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace fsbl {
namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  constexpr std::string_view kSpace = " \t\n";
  for (size_t at = text.find_first_not_of(kSpace); at != text.npos; at = text.find_first_not_of(kSpace, at)) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end;
  }
  return result;
}

bool parse_count(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse_ticks(std::string_view text, int64_t ns_per_tick, int64_t& ns) {
  uint64_t ticks = 0;
  return parse_count(text, ticks) && ticks <= INT64_MAX / static_cast<uint64_t>(ns_per_tick) &&
         (ns = static_cast<int64_t>(ticks) * ns_per_tick, true);
}

// The text's line that starts with `key`, without it.
std::optional<std::string_view> line_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

}  // namespace

Expected<ProcessStat> parse_process_stat(std::string_view text, int64_t ns_per_tick) {
  // "pid (name) state ppid …": the name may hold anything, so count the fields from the last parenthesis.
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos) return bad_input("parse /proc/<pid>/stat", "no (name)");
  const auto fields = words(text.substr(name_end + 1));  // fields[0] is field 3, the state
  constexpr size_t kFirst = 3, kMinorFaults = 10, kMajorFaults = 12, kUser = 14, kSystem = 15, kStart = 22;
  if (fields.size() <= kStart - kFirst) return bad_input("parse /proc/<pid>/stat", "too few fields");
  const auto field = [&](size_t number) { return fields[number - kFirst]; };
  ProcessStat stat;
  stat.state = fields[0][0];
  if (!parse_count(field(kMinorFaults), stat.minor_faults) ||
      !parse_count(field(kMajorFaults), stat.major_faults) ||
      !parse_ticks(field(kUser), ns_per_tick, stat.user_ns) ||
      !parse_ticks(field(kSystem), ns_per_tick, stat.system_ns) ||
      !parse_count(field(kStart), stat.start_ticks))
    return bad_input("parse /proc/<pid>/stat", "a field is no count");
  return stat;
}

std::optional<uint64_t> status_field(std::string_view text, std::string_view key) {
  const auto line = line_after(text, fmt::format("{}:", key));
  if (!line) return std::nullopt;
  const auto fields = words(*line);
  uint64_t value = 0;
  if (fields.empty() || fields.size() > 2 || !parse_count(fields[0], value)) return std::nullopt;
  if (fields.size() == 1) return value;
  if (fields[1] != "kB") return std::nullopt;
  return value * 1024;
}

Expected<CpuTimes> parse_cpu_line(std::string_view proc_stat, int cpu, int64_t ns_per_tick) {
  const std::string what = fmt::format("read cpu{} in /proc/stat", cpu);
  const auto line = line_after(proc_stat, fmt::format("cpu{} ", cpu));
  if (!line) return unavailable(what, "no such CPU, or it is offline");
  const auto fields = words(*line);  // user nice system idle iowait irq softirq steal …
  int64_t ns[8];
  if (fields.size() < std::size(ns)) return bad_input(what, "too few fields");
  for (size_t i = 0; i < std::size(ns); ++i)
    if (!parse_ticks(fields[i], ns_per_tick, ns[i])) return bad_input(what, "a field is no count of ticks");
  return CpuTimes{ns[0] + ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7]};
}

}  // namespace fsbl
