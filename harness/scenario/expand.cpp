#include "harness/scenario/expand.h"

#include <fmt/format.h>

#include <set>

#include "harness/core/random.h"
#include "harness/scenario/settings.h"

namespace fsbl {
namespace {

struct ReadArm {
  std::string name;
  Layer layer;
};

Expected<std::vector<ReadArm>> read_arms(const Scenario& scenario, const std::vector<Arm>& arms) {
  if (arms.empty()) return std::vector<ReadArm>(1);
  std::vector<ReadArm> read;
  for (const Arm& arm : arms) {
    const std::string option = fmt::format("--arm {}:", arm.name);
    FSBL_ASSIGN(Layer layer, layer_of(arm.settings, option, RunKeys::none));
    for (const Entry& entry : layer.values)
      if (find(scenario.layer.sweeps, entry.key))
        return bad_input(entry.value.where, fmt::format("{} is swept by {}", entry.key, scenario.id),
                         fmt::format("fix it first with --set {}=…", entry.key));
    read.push_back({arm.name, std::move(layer)});
  }
  return read;
}

// One value for every sweep, as indices; the last one varies fastest.
class Odometer {
 public:
  explicit Odometer(const std::vector<Entry>& sweeps) : sweeps_(sweeps), digits_(sweeps.size(), 0) {}
  const Node& value(size_t sweep) const { return sweeps_[sweep].value.items[digits_[sweep]]; }
  bool next() {  // false once all are done, and at the first again
    for (size_t i = digits_.size(); i-- > 0;) {
      if (++digits_[i] < sweeps_[i].value.items.size()) return true;
      digits_[i] = 0;
    }
    return false;
  }

 private:
  const std::vector<Entry>& sweeps_;
  std::vector<size_t> digits_;
};

// The factors that every cell has, then each swept key that is not among them.
Json factors_of(const Cell& cell, const std::vector<Entry>& sweeps) {
  const CellConfig& config = cell.config;
  const LoadConfig& load = config.load;
  Json factors = {{"scenario", cell.scenario},           {"arm", cell.arm},
                  {"transport", config.transport.name},  {"tunnel", config.transport.tunnel},
                  {"session", config.transport.session}, {"engine", config.transport.engine},
                  {"shape", to_text(load.shape)},        {"payload_bytes", load.payload_bytes}};
  std::set<std::string_view> named = {"load.shape", "load.payload", "load.streams", "testbed.mtu",
                                      "testbed.ip", "load.wait",    "load.verify"};
  if (load.shape == Shape::request_response) {
    factors["reply_bytes"] = load.reply_bytes;
    named.insert("load.reply");
  }
  factors["streams"] = load.streams;
  if (load.shape == Shape::stream) {
    factors["direction"] = to_text(load.direction);
    named.insert("load.direction");
  }
  factors["mtu"] = config.testbed.mtu;
  factors["ip"] = static_cast<int>(config.testbed.ip);
  factors["wait"] = to_text(load.wait);
  factors["verify"] = to_text(load.verify);
  if (config.transport.session == "tls") {
    factors["cipher"] = config.tls.cipher;
    factors["group"] = config.tls.group;
    factors["key"] = to_text(config.tls.key);
    named.insert({"tls.cipher", "tls.group", "tls.key"});
  }
  for (const Entry& sweep : sweeps) {
    if (named.contains(sweep.key)) continue;
    auto [name, value] = factor(config, sweep.key);
    factors[name] = std::move(value);
  }
  return factors;
}

// What contradicts itself in a cell, at the place that set one of the keys (or else at the file).
Expected<> check_cell(const Cell& cell, const Scenario& scenario, const ReadArm& arm) {
  const auto found = contradiction(cell.config);
  if (!found) return {};
  for (const std::string& key : found->keys)
    for (const auto* entries : {&arm.layer.values, &scenario.layer.sweeps, &scenario.layer.values})
      if (const Node* node = find(*entries, key)) return bad_input(node->where, found->why, found->fix);
  return bad_input(scenario.path, found->why, found->fix);
}

Expected<> check_size(const Scenario& scenario, size_t arms) {
  size_t cells = arms * scenario.transports.size();
  for (const Entry& sweep : scenario.layer.sweeps) {
    if (cells > kMaxCells) break;  // before the product can overflow
    cells *= sweep.value.items.size();
  }
  if (cells > kMaxCells)
    return bad_input(scenario.path, fmt::format("more than {} cells", kMaxCells), "sweep fewer keys at once");
  return {};
}

}  // namespace

Expected<std::vector<Cell>> expand(const Scenario& scenario, const std::vector<Arm>& arms) {
  FSBL_ASSIGN(const auto read, read_arms(scenario, arms));
  FSBL_TRY(check_size(scenario, read.size()));
  const std::vector<Entry>& sweeps = scenario.layer.sweeps;

  std::vector<Cell> cells;
  std::set<std::string> ids;
  for (const ReadArm& arm : read) {
    CellConfig arm_config = scenario.config;
    for (const Entry& entry : arm.layer.values) FSBL_TRY(set(arm_config, entry.key, entry.value));
    for (const Composition& transport : scenario.transports) {
      Odometer at(sweeps);
      do {
        Cell cell{.scenario = scenario.id, .arm = arm.name, .config = arm_config};
        cell.config.transport = transport;
        cell.id = fmt::format("{}|{}", scenario.id, transport.name);
        for (size_t i = 0; i < sweeps.size(); ++i) {
          FSBL_TRY(set(cell.config, sweeps[i].key, at.value(i)));
          cell.id += fmt::format("|{}={}", sweeps[i].key, file_text(cell.config, sweeps[i].key));
        }
        if (!arm.name.empty()) cell.id += "|arm=" + arm.name;
        FSBL_TRY(check_cell(cell, scenario, arm));
        if (!ids.insert(cell.id).second)  // only free text that holds '|' can do this
          return bad_input(scenario.path, fmt::format("two cells are called '{}'", cell.id));
        cell.factors = factors_of(cell, sweeps);
        cells.push_back(std::move(cell));
      } while (at.next());
    }
  }
  return cells;
}

std::vector<PlannedRound> schedule(const std::vector<int>& repetitions_of_cell, uint64_t seed) {
  std::vector<PlannedRound> rounds;
  for (int block = 0;; ++block) {
    std::vector<size_t> cells;
    for (size_t cell = 0; cell < repetitions_of_cell.size(); ++cell)
      if (repetitions_of_cell[cell] > block) cells.push_back(cell);
    if (cells.empty()) return rounds;
    // The seed is scrambled first, so that neighbouring seeds and blocks share no order.
    SplitMix64 random(SplitMix64(seed).next() ^ static_cast<uint64_t>(block));
    seeded_shuffle(cells, random);
    for (const size_t cell : cells)
      rounds.push_back({.cell = cell, .block = block, .order = static_cast<int>(rounds.size())});
  }
}

}  // namespace fsbl
