// fsbl-worker: started by fsbl-agent with a frame channel on descriptor 3, and its record engine's module, if that has
// one, on descriptor 4 (the file may lie in a folder that this user can't enter). With --check-engine it tries a record
// engine and says on stdout what came of it.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstring>

#include "fsbl_version.h"
#include "harness/core/log.h"
#include "harness/worker/worker.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("fsbl-worker %s (%s)\n", FSBL_VERSION, FSBL_COMMIT);
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "--check-engine") == 0) {
    fsbl::log_start("fsbl-worker");
    std::puts(fsbl::check_engine_here(argv[2]).c_str());
    return 0;
  }
  const bool has_module = argc == 3 && std::strcmp(argv[2], "--module=4") == 0;
  if (!(argc == 2 || has_module) || std::strcmp(argv[1], "--channel=3") != 0) {
    std::fputs("fsbl-worker: is started by fsbl-agent, not by hand; see `fsbl run --help`\n", stderr);
    return 2;
  }
#ifndef __SANITIZE_ADDRESS__  // LeakSanitizer looks at the process from outside
  prctl(PR_SET_DUMPABLE, 0);  // before a key is in memory: no core file, no debugger of the same user
#endif
  prctl(PR_SET_NAME, "fsbl-worker");  // run by descriptor, it would be called after that
  fsbl::log_start("fsbl-worker");
  // Ctrl-C reaches the whole process group; the controller decides, this process ends with its agent.
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const auto served = fsbl::serve_worker(3, has_module ? "/proc/self/fd/4" : "");
  if (!served) {
    fsbl::log_debug(served.error().message());
    return fsbl::exit_code(served.error().kind);
  }
  return 0;
}
