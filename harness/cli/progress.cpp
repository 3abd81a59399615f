#include "harness/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "harness/core/units.h"

namespace fsbl {

std::string format_left(Nanos left) {
  const int64_t seconds = std::max<int64_t>(0, (left + 500'000'000) / 1'000'000'000);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

std::string round_in_short(const Round& round) {
  if (round.status != "valid") {
    for (const Flag& flag : round.flags)
      if (flag.invalidates) return fmt::format("{}: {} {}", round.status, flag.code, flag.value.is_string() ? flag.value.get<std::string>() : flag.value.dump());
    return round.status;
  }
  for (const Series& series : round.series) {
    if (series.metric == "latency" && series.distribution && series.distribution->count() > 0)
      return fmt::format("p50 {} (n={})", format_duration(*series.distribution->quantile(0.5)), series.distribution->count());
    if (series.metric == "throughput" && series.value) return fmt::format("{:.3g} Gbit/s", *series.value / 1e9);
  }
  return "done";
}

ProgressPrinter::ProgressPrinter() : terminal_(isatty(2) == 1), columns_(80) {
  winsize size{};
  if (terminal_ && ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) columns_ = size.ws_col;
}

void ProgressPrinter::show(const Progress& p) {
  if (!terminal_) {
    if (p.ended) fmt::print(stderr, "[{}/{}] {} · block {} · {} · {} left\n", p.done, p.total, p.cell, p.ended->block + 1, round_in_short(*p.ended), format_left(p.left));
    std::fflush(stderr);
    return;
  }
  const int filled = p.total ? static_cast<int>(20 * p.done / p.total) : 0;
  std::string line = fmt::format("[{:#>{}}{:.>{}}] {}/{}  {} left  {}", "", filled, "", 20 - filled, p.done, p.total, format_left(p.left), p.cell);
  if (static_cast<int>(line.size()) >= columns_) line.resize(static_cast<size_t>(columns_ - 1));
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
}

void ProgressPrinter::end() {
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace fsbl
