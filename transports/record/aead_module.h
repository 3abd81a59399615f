// Cipher back ends with heavy dependencies are shared objects beside the worker: fsbl-<name>.so exports an AeadModule.
#pragma once
#include "transports/record/aead.h"

namespace fsbl {

// Whether the file is there; what it needs itself shows when it is loaded.
Expected<> module_is_there(const std::string& name);
// Loads it and opens a device. A module stays loaded until the process ends.
Expected<std::unique_ptr<AeadDevice>> open_module_device(const std::string& name, const AeadConfig& config);

}  // namespace fsbl
