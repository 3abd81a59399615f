// fsbl-agent: started by fsbl in a host's network namespace, with frames on descriptors 0 and 1 and its log on 2.
#include <signal.h>

#include <cstdio>
#include <cstring>

#include "fsbl_version.h"
#include "harness/agent/agent.h"
#include "harness/core/log.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("fsbl-agent %s (%s)\n", FSBL_VERSION, FSBL_COMMIT);
    return 0;
  }
  if (argc != 2 || std::strcmp(argv[1], "--stdio") != 0) {
    std::fputs("fsbl-agent: is started by fsbl, not by hand; see `fsbl run --help`\n", stderr);
    return 2;
  }
  fsbl::log_start("fsbl-agent");
  // Ctrl-C reaches the whole process group; the controller decides, the agent ends with its channel.
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const auto served = fsbl::serve_agent(0, 1);
  if (!served) {
    fsbl::log_error(served.error().message());
    return fsbl::exit_code(served.error().kind);
  }
  return 0;
}
