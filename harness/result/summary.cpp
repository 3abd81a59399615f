// summary[] from rounds[]. The rules are METHOD's: the run is the unit of replication; a quantile is printed
// only when enough samples stand behind it; quantiles are never averaged, histograms are merged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/result/model.h"

namespace fsbl {
namespace {

constexpr double kQuantiles[] = {0.5, 0.95, 0.99, 0.999};
constexpr double kTailFrom = 0.95;      // below, one sample is enough
constexpr size_t kRunsForOutliers = 5;  // the MAD of fewer runs is the gap between two of them

// What makes a row, quantiles aside.
struct Key {
  std::string metric, basis, side;
  bool operator==(const Key&) const = default;
};

// One valid round's contribution: of the same kind (distribution or scalar) as its row.
struct Run {
  int block;
  const Series* series;
};

struct Measured {
  Key key;
  const Series* first = nullptr;  // unit and direction
  std::vector<Run> runs;
};

// A cell's series in the order in which they first appear, with the valid rounds that have them.
std::vector<Measured> measured_in(const std::string& cell, const std::vector<Round>& rounds) {
  std::vector<Measured> out;
  for (const Round& round : rounds) {
    if (round.cell != cell) continue;
    for (const Series& series : round.series) {
      const Key key{series.metric, series.basis, series.side};
      auto found = std::find_if(out.begin(), out.end(), [&](const Measured& m) { return m.key == key; });
      if (found == out.end()) found = out.insert(out.end(), {key, &series, {}});
      const bool usable = found->first->distribution ? series.distribution.has_value()
                                                     : series.value && std::isfinite(*series.value);
      if (round.status == "valid" && usable) found->runs.push_back({round.block, &series});
    }
  }
  return out;
}

// Values of one row, before it is compared with plaintext.
struct Values {
  std::vector<int> blocks;
  std::vector<double> per_run;     // beside `blocks`; empty when runs can't stand alone
  std::optional<double> together;  // the merged histogram's quantile, when enough samples stand behind it
};

uint64_t needed(double quantile) {
  return quantile < kTailFrom ? 1 : samples_needed(quantile);
}

Values values_of(const Measured& measured, std::optional<double> quantile, const Histogram* merged) {
  Values values;
  for (const Run& run : measured.runs) {
    const auto& distribution = run.series->distribution;
    if (quantile && distribution->count() < needed(*quantile)) {
      values.per_run.clear();
      values.blocks.clear();
      break;
    }
    values.blocks.push_back(run.block);
    values.per_run.push_back(quantile ? static_cast<double>(*distribution->quantile(*quantile))
                                      : *run.series->value);
  }
  if (quantile && merged && merged->count() >= needed(*quantile))
    values.together = static_cast<double>(*merged->quantile(*quantile));
  return values;
}

// The runs of one series merged; nullopt for scalars.
std::optional<Histogram> merge(const Measured& measured) {
  if (!measured.first->distribution) return std::nullopt;
  int64_t highest = 0;
  for (const Run& run : measured.runs) highest = std::max(highest, run.series->distribution->highest());
  Histogram merged(highest);
  for (const Run& run : measured.runs) merged.merge(*run.series->distribution);
  return merged;
}

void add_note(SummaryRow& row, const std::string& text) {
  row.note += (row.note.empty() ? "" : "; ") + text;
}

void note_outliers(SummaryRow& row, const Values& values) {
  if (values.per_run.size() < kRunsForOutliers) return;
  for (const size_t i : mad_outliers(values.per_run))
    add_note(row, fmt::format("block {} is an outlier", values.blocks[i]));
}

// Candidate over base, paired within the blocks that both have.
std::optional<Ratio> ratio_of(const Values& candidate, const Values& base) {
  if (candidate.per_run.empty() || base.per_run.empty()) {
    if (!candidate.together || !base.together || *candidate.together <= 0 || *base.together <= 0)
      return std::nullopt;
    return Ratio{*candidate.together / *base.together, std::nullopt};
  }
  std::vector<double> ours, theirs;
  for (size_t i = 0; i < candidate.blocks.size(); ++i) {
    const auto pair = std::find(base.blocks.begin(), base.blocks.end(), candidate.blocks[i]);
    if (pair == base.blocks.end()) continue;
    ours.push_back(candidate.per_run[i]);
    theirs.push_back(base.per_run[static_cast<size_t>(pair - base.blocks.begin())]);
  }
  return paired_ratio(ours, theirs);
}

// What a transport may differ in from the plaintext that it is compared with.
bool belongs_to_transport(const std::string& factor) {
  static const std::set<std::string_view> names = {"transport", "tunnel", "session", "engine",
                                                   "cipher",    "group",  "key"};
  return names.contains(factor) || factor.starts_with("tls.") || factor.starts_with("crypto.") ||
         factor.starts_with("placement.crypto_");
}

std::map<std::string, Json> shared_factors(const Cell& cell) {
  std::map<std::string, Json> out;
  for (const auto& [name, value] : cell.factors.items())
    if (!belongs_to_transport(name)) out[name] = value;
  return out;
}

bool is_plaintext(const Cell& cell) {
  return cell.config.transport.name == "plaintext";
}

const Cell* plaintext_of(const Cell& cell, const std::vector<Cell>& cells) {
  if (is_plaintext(cell)) return nullptr;
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const Cell& other) {
    return is_plaintext(other) && other.scenario == cell.scenario && other.arm == cell.arm &&
           shared_factors(other) == shared_factors(cell);
  });
  return found == cells.end() ? nullptr : &*found;
}

class Summary {
 public:
  Summary(const std::vector<Cell>& cells, const std::vector<Round>& rounds)
      : cells_(cells), rounds_(rounds) {}

  std::vector<SummaryRow> make() {
    for (const Cell& cell : cells_) {
      const Cell* plain = plaintext_of(cell, cells_);
      const auto base = plain ? measured_in(plain->id, rounds_) : std::vector<Measured>();
      for (const Measured& measured : measured_in(cell.id, rounds_)) {
        const auto found =
            std::find_if(base.begin(), base.end(), [&](const Measured& m) { return m.key == measured.key; });
        add_series(cell, measured, found == base.end() ? nullptr : &*found);
      }
    }
    return std::move(rows_);
  }

 private:
  void add_series(const Cell& cell, const Measured& measured, const Measured* base) {
    const auto merged = merge(measured);
    const auto base_merged = base ? merge(*base) : std::nullopt;
    const auto add = [&](std::optional<double> quantile) {
      SummaryRow row = blank_row(cell, measured, merged ? &*merged : nullptr, quantile);
      const Values values = values_of(measured, quantile, merged ? &*merged : nullptr);
      fill(row, values);
      if (base && row.value)
        row.ratio_to_plaintext =
            ratio_of(values, values_of(*base, quantile, base_merged ? &*base_merged : nullptr));
      rows_.push_back(std::move(row));
    };
    if (!measured.first->distribution) return add(std::nullopt);
    for (const double quantile : kQuantiles) add(quantile);
    add_maximum(cell, measured, merged ? &*merged : nullptr);
  }

  static SummaryRow blank_row(const Cell& cell, const Measured& measured, const Histogram* merged,
                              std::optional<double> quantile) {
    SummaryRow row;
    row.cell = cell.id;
    row.metric = measured.key.metric;
    row.basis = measured.key.basis;
    row.side = measured.key.side;
    row.unit = measured.first->unit;
    row.better = measured.first->better;
    row.quantile = quantile;
    row.n = measured.runs.size();
    row.samples = merged ? merged->count() : 0;
    if (merged && merged->clipped() > 0) add_note(row, fmt::format("{} samples clipped", merged->clipped()));
    return row;
  }

  static void fill(SummaryRow& row, const Values& values) {
    if (!values.per_run.empty()) {
      row.value = median(values.per_run);
      row.interval = median_interval(values.per_run);
      row.cv = coefficient_of_variation(values.per_run);
      note_outliers(row, values);
    } else if (values.together) {
      row.value = values.together;
      row.pooled = true;
    } else {
      add_note(row, row.n == 0 ? "n/a (no valid round)" : fmt::format("n/a (n={})", row.samples));
    }
  }

  // A maximum has no distribution over runs to take the middle of: the largest seen is all that can be said.
  void add_maximum(const Cell& cell, const Measured& measured, const Histogram* merged) {
    SummaryRow row = blank_row(cell, measured, merged, 1.0);
    if (row.samples > 0) {
      row.value = static_cast<double>(merged->max());
      add_note(row, fmt::format("largest of {} runs", row.n));
    } else {
      fill(row, {});
    }
    rows_.push_back(std::move(row));
  }

  const std::vector<Cell>& cells_;
  const std::vector<Round>& rounds_;
  std::vector<SummaryRow> rows_;
};

}  // namespace

std::vector<SummaryRow> summarise(const std::vector<Cell>& cells, const std::vector<Round>& rounds) {
  return Summary(cells, rounds).make();
}

}  // namespace fsbl
