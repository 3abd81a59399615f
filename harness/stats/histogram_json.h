// A histogram as JSON: the V2 wire format, and beside it the exact facts which that format does not carry.
#pragma once
#include "harness/core/json.h"
#include "harness/stats/histogram.h"

namespace fsbl {

// {encoding, data, n, clipped, min, max, mean, quantiles {"p50", "p95", "p99", "p99.9", "max"}}. An empty
// histogram has no min, max and mean; a quantile with too few samples behind it (samples_needed) is left out.
Json to_json(const Histogram& histogram);
// Inverse: exact min, max and clipped come back; quantiles and mean are recomputed, never read. Refuses data
// whose count is not `n`. Never throws.
Expected<Histogram> histogram_from_json(const Json& json);

}  // namespace fsbl
