// Asks a record engine, before a run, whether it works here: a worker opens its device and puts it through the known
// answers (fsbl-worker --check-engine). Only engines that a look at the host can't decide about are asked.
#pragma once
#include "harness/core/error.h"
#include "harness/core/json.h"
#include "harness/scenario/model.h"

namespace fsbl {

// RecordEngines::facts() of the cell's engine; null when it has none or needs no asking. The error says why the
// engine can't be used, and the fix.
Expected<Json> check_engine(const CellConfig& config);

}  // namespace fsbl
