// The record engines of a load thread from a cipher back end: one device a process, checked before it is trusted, one
// queue a thread, on the thread itself or on a core of its own.
#pragma once
#include <functional>

#include "harness/transport/record_engine.h"
#include "transports/record/aead.h"

namespace fsbl {

Expected<std::unique_ptr<RecordEngines>> make_aead_engines(
    const EngineConfig& config, const std::function<Expected<std::unique_ptr<AeadDevice>>(const AeadConfig&)>& open);

}  // namespace fsbl
