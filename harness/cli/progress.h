// Progress of a run on stderr: one line that rewrites itself on a terminal, one line a round in a pipe.
#pragma once
#include "harness/run/runner.h"

namespace fsbl {

class ProgressPrinter {
 public:
  ProgressPrinter();
  void show(const Progress& progress);
  void end();   // leaves the terminal line clean

 private:
  bool terminal_;
  int columns_;
};

// "1m40s", "12s".
std::string format_left(Nanos left);
// What a round says in one line: "p50 123 µs", "12.3 Gbit/s", or why it broke.
std::string round_in_short(const Round& round);

}  // namespace fsbl
