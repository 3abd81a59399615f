// fsbl-worker: runs the load threads of one role for one round. Unprivileged. Speaks frames with its agent on one
// descriptor: hello, setup, connect or accept, go. Between `go` and its reading it neither reads nor writes there.
#pragma once
#include <string>

#include "harness/core/error.h"

namespace fsbl {

// Serves until the reading is delivered or the agent is gone. `engine_module`: where the record engine's shared object
// is; empty: beside this program.
Expected<> serve_worker(int channel_fd, const std::string& engine_module = "");

// Makes the record engine of a CellConfig (JSON) as a load thread would, on this thread: {"ok": facts} or {"error": ...}.
std::string check_engine_here(const std::string& config);

}  // namespace fsbl
