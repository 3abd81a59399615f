// fsbl-worker: runs the load threads of one role for one round. Unprivileged. Speaks frames with its agent on one
// descriptor: hello, setup, connect or accept, go. Between `go` and its reading it neither reads nor writes there.
#pragma once
#include "harness/core/error.h"

namespace fsbl {

// Serves until the reading is delivered or the agent is gone.
Expected<> serve_worker(int channel_fd);

}  // namespace fsbl
