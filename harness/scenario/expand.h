// From one scenario to its cells, and from the cells of all scenarios to the order of the rounds. Pure.
#pragma once
#include <string>
#include <vector>

#include "harness/scenario/layer.h"
#include "harness/scenario/load.h"

namespace fsbl {

inline constexpr size_t kMaxCells = 2000;  // of a whole run

// A scenario after its profile and --set.
struct Scenario {
  std::string id, title, description, path;
  uint64_t seed = 0;
  int repetitions = 0;
  std::vector<Composition> transports;
  CellConfig config;  // before arm, transport and matrix factors
  Layer layer;        // what was said, and where; the sweeps
};

// `name` is how errors call the file.
Expected<Scenario> resolve(const std::string& yaml, const std::string& name, const PlanRequest& request);
// The scenario as a document again: every default filled in, nothing left of how it was written. It is itself
// a scenario file (JSON is YAML) that makes the same plan.
Json resolved_document(const Scenario& scenario);

// arms × transports × matrix, the last factor varying fastest.
Expected<std::vector<Cell>> expand(const Scenario& scenario, const std::vector<Arm>& arms);

// Block b holds every cell whose repetitions exceed b once, in an order drawn from (seed, b).
std::vector<PlannedRound> schedule(const std::vector<int>& repetitions_of_cell, uint64_t seed);

}  // namespace fsbl
