#include "harness/stats/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/stats/multiple.h"
#include "harness/stats/paired_t.h"
#include "harness/stats/planning.h"

namespace fsbl {
namespace {

constexpr double kLargestLogRatio = 20;  // a factor of 5e8; keeps every exp() finite too

struct Judged {
  CellVerdict cell;
  std::optional<PairedT> sample;
  bool decidable = false;
};

// Slowdown of a log-ratio in per cent: "+2.50 %".
std::string percent(double log_ratio) {
  return fmt::format("{:+.2f} %", 100 * std::expm1(log_ratio));
}

Expected<> check(const GatePolicy& policy) {
  const std::string what = "gate policy";
  if (!(policy.tolerated_slowdown >= 0 && std::isfinite(policy.tolerated_slowdown)))
    return bad_input(what, fmt::format("tolerated slowdown is {}", policy.tolerated_slowdown),
                     "give 0 or more");
  if (!(policy.alpha > 0 && policy.alpha < 0.5))
    return bad_input(what, fmt::format("alpha is {}", policy.alpha), "give a value in (0, 0.5)");
  if (!(policy.power > policy.alpha && policy.power < 1))
    return bad_input(what, fmt::format("power is {}", policy.power), "give a value in (alpha, 1)");
  if (policy.resamples == 0) return bad_input(what, "0 resamples", "give 1 or more");
  return {};
}

bool is_log_ratio(double s) {
  return std::abs(s) <= kLargestLogRatio;
}  // false for NaN

// Why no verdict can rest on these values.
std::optional<std::string> undecidable(std::span<const double> slowdowns) {
  const auto bad = std::find_if_not(slowdowns.begin(), slowdowns.end(), is_log_ratio);
  if (bad != slowdowns.end())
    return fmt::format("block {} holds {}, which is no log-ratio of a measurement",
                       bad - slowdowns.begin() + 1, *bad);
  if (slowdowns.size() < kFewestBlocks)
    return fmt::format("{} blocks, and a verdict needs {}", slowdowns.size(), kFewestBlocks);
  if (!paired_t(slowdowns))
    return fmt::format("all {} blocks hold the same log-ratio {}: no variance to judge by", slowdowns.size(),
                       slowdowns.front());
  return std::nullopt;
}

Expected<Judged> measure(const GatedCell& input, double delta, const GatePolicy& policy) {
  Judged judged;
  CellVerdict& cell = judged.cell;
  cell.name = input.name;
  cell.blocks = input.slowdowns.size();
  const auto reason = undecidable(input.slowdowns);
  judged.decidable = !reason;
  if (reason) cell.reason = *reason;
  const bool measured = std::all_of(input.slowdowns.begin(), input.slowdowns.end(), is_log_ratio);
  if (input.slowdowns.empty() || !measured) return judged;
  judged.sample = paired_t(input.slowdowns);
  if (!judged.sample) {
    cell.estimate_ratio = std::exp(input.slowdowns.front());  // the only one, or that of all
    return judged;
  }
  cell.estimate_ratio = std::exp(judged.sample->mean);
  cell.lower_ratio = std::exp(lower_bound(*judged.sample, 1 - policy.alpha));
  cell.upper_ratio = std::exp(upper_bound(*judged.sample, 1 - policy.alpha));
  cell.t_p = p_above(*judged.sample, 0);
  cell.pass_p = p_below(*judged.sample, delta);
  FSBL_ASSIGN(cell.sign_flip,
              sign_flip_test(input.slowdowns, {.seed = policy.seed, .resamples = policy.resamples}));
  return judged;
}

// Undecidable cells count with p = 1: they can't be found, and leave the others no more of alpha.
template <class P>
Expected<std::vector<double>> holm_over(const std::vector<Judged>& cells, P p_of) {
  std::vector<double> p;
  p.reserve(cells.size());
  for (const Judged& judged : cells) p.push_back(judged.decidable ? p_of(judged.cell) : 1.0);
  return holm_adjusted(p);
}

void decide(Judged& judged, double delta, const GatePolicy& policy) {
  CellVerdict& cell = judged.cell;
  const double mean = judged.sample->mean;
  const std::string estimate =
      fmt::format("estimate {}, Holm-corrected p = {:.2g}", percent(mean), *cell.holm_p);
  if (*cell.holm_p < policy.alpha && mean > delta) {
    cell.verdict = GateVerdict::regression;
    cell.reason = fmt::format("slower beyond the tolerated {}: {}", percent(delta), estimate);
  } else if (*cell.pass_p < policy.alpha) {
    cell.verdict = GateVerdict::pass;
    cell.reason = fmt::format("upper {:g} % bound {} is below the tolerated {}", 100 * (1 - policy.alpha),
                              percent(std::log(*cell.upper_ratio)), percent(delta));
  } else {
    cell.reason =
        fmt::format("upper {:g} % bound {} isn't below the tolerated {}, and no regression is shown: {}",
                    100 * (1 - policy.alpha), percent(std::log(*cell.upper_ratio)), percent(delta), estimate);
  }
  if ((*cell.holm_p < policy.alpha) != (*cell.sign_flip_holm_p < policy.alpha))
    cell.notes.push_back(
        fmt::format("t and sign-flip disagree about a slowdown: Holm-corrected p = {:.2g} (t), "
                    "{:.2g} (sign-flip, {}); the verdict is t's",
                    *cell.holm_p, *cell.sign_flip_holm_p, cell.sign_flip->method));
}

void plan(Judged& judged, double delta, size_t k, const GatePolicy& policy) {
  if (!judged.sample) return;
  const PairedT& sample = *judged.sample;
  const TestDesign regression{policy.alpha / static_cast<double>(k), policy.power, delta};
  if (const auto effect = minimum_detectable_effect(sample.sd, sample.n, regression))
    judged.cell.detectable_ratio = std::exp(*effect);
  if (judged.cell.verdict != GateVerdict::inconclusive) return;
  judged.cell.blocks_to_decide =
      sample.mean > delta ? planned_blocks(sample.mean, sample.sd, regression)
                          : planned_blocks(delta - sample.mean, sample.sd, {policy.alpha, policy.power});
}

std::string names_of(const RunVerdict& run, GateVerdict verdict) {
  std::string names;
  for (const CellVerdict& cell : run.cells)
    if (cell.verdict == verdict) names += (names.empty() ? "" : ", ") + cell.name;
  return names;
}

void conclude(RunVerdict& run, const GatePolicy& policy) {
  const std::string regressions = names_of(run, GateVerdict::regression);
  if (!regressions.empty()) {
    run.verdict = GateVerdict::regression;
    run.reason = "regression in " + regressions;
  } else if (run.pass_p && *run.pass_p < policy.alpha) {
    run.verdict = GateVerdict::pass;
    run.reason = fmt::format("every gated cell passes ({})", run.cells.size());
  } else {
    run.reason = "undecided: " + names_of(run, GateVerdict::inconclusive);
  }
}

}  // namespace

const char* to_string(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::pass:
      return "pass";
    case GateVerdict::regression:
      return "regression";
    case GateVerdict::inconclusive:
      break;
  }
  return "inconclusive";
}

Expected<RunVerdict> judge(std::span<const GatedCell> cells, const GatePolicy& policy) {
  if (cells.empty())
    return bad_input("gate", "no gated cells", "name one or more primary cells in the policy");
  FSBL_TRY(check(policy));
  const double delta = std::log1p(policy.tolerated_slowdown);
  std::vector<Judged> judged;
  for (const GatedCell& input : cells) {
    FSBL_ASSIGN(Judged one, measure(input, delta, policy));
    judged.push_back(std::move(one));
  }
  FSBL_ASSIGN(const std::vector<double> holm, holm_over(judged, [](const CellVerdict& c) { return *c.t_p; }));
  FSBL_ASSIGN(const std::vector<double> flips,
              holm_over(judged, [](const CellVerdict& c) { return c.sign_flip->p; }));
  const auto [fewest, most] = std::minmax_element(
      cells.begin(), cells.end(),
      [](const GatedCell& a, const GatedCell& b) { return a.slowdowns.size() < b.slowdowns.size(); });
  const bool complete = fewest->slowdowns.size() == most->slowdowns.size();
  const bool decidable =
      std::all_of(judged.begin(), judged.end(), [](const Judged& one) { return one.decidable; });

  RunVerdict run;
  std::vector<double> pass;
  for (size_t i = 0; i < judged.size(); ++i) {
    CellVerdict& cell = judged[i].cell;
    if (judged[i].decidable) {
      cell.holm_p = holm[i];
      cell.sign_flip_holm_p = flips[i];
      pass.push_back(*cell.pass_p);
      decide(judged[i], delta, policy);
    }
    plan(judged[i], delta, cells.size(), policy);
  }
  if (decidable) {
    FSBL_ASSIGN(run.pass_p, intersection_union_p(pass));
  }
  const std::string uneven = fmt::format("{} to {} blocks per cell: not the complete blocks of one run",
                                         fewest->slowdowns.size(), most->slowdowns.size());
  std::optional<uint64_t> largest = 0;
  for (Judged& one : judged) {
    CellVerdict& cell = one.cell;
    if (cell.verdict == GateVerdict::inconclusive)
      largest = largest && cell.blocks_to_decide ? std::max(largest, cell.blocks_to_decide) : std::nullopt;
    if (!complete) {
      cell.notes.push_back(fmt::format("by itself: {} ({})", to_string(cell.verdict), cell.reason));
      cell.verdict = GateVerdict::inconclusive;
      cell.reason = uneven;
    }
    run.cells.push_back(std::move(cell));
  }
  if (!complete) {
    run.reason = uneven;
    return run;
  }
  conclude(run, policy);
  if (run.verdict == GateVerdict::inconclusive) run.blocks_to_decide = largest;
  return run;
}

}  // namespace fsbl
