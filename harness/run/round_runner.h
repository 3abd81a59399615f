// Drives one round through a live testbed: the same steps on both sides, in step.
#pragma once
#include "harness/identity/svid.h"
#include "harness/result/model.h"
#include "harness/run/agent_process.h"

namespace fsbl {

// What the rounds of a run write beside the result: one JSON object a line.
struct RunLogs {
  std::string handshakes, issuance, refusals;
  uint64_t handshake_entries = 0, issuance_entries = 0, refusal_entries = 0;
};

// A round that measured (valid or not) comes back as a value; one that could not be carried through as an error,
// with what had been observed until then left in `round` and `logs`.
Expected<> run_round(LiveTestbed& testbed, const Cell& cell, const SvidAuthority& authority, uint64_t pattern_seed,
                     Round& round, RunLogs& logs);

// From the two sides' replies to series, accounting, flags and path (pure; round_reading.cpp).
void read_round(const Cell& cell, const BothSides<Json>& connected, const BothSides<Json>& measured, Round& round);

}  // namespace fsbl
