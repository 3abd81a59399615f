// Ctrl-C and SIGTERM as a descriptor that becomes readable, for poll() loops; SIGPIPE ignored.
#pragma once
#include "harness/core/error.h"

namespace fsbl {

// Blocks SIGINT, SIGTERM and SIGHUP and routes them to cancel_fd(). Call once, first thing in main().
Expected<> cancel_start();
int cancel_fd();       // readable once a stop was asked for
bool cancel_asked();   // never blocks

}  // namespace fsbl
