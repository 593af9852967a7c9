#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "apps/hearsay/advice/advice.hpp"
#include "apps/hearsay/advice/front.hpp"
#include "base/config/config.hpp"
#include "topology/topology.hpp"

namespace hearsay {
namespace {

/// Of a method: these sections of a configuration.
struct Sections {
  std::string_view method, exchange, trigger, sparsify;
};
constexpr std::string_view events = "{name: eventgrad, mixing: {name: arrival}, correction: {name: drift}}";
constexpr std::string_view weakly =
    "{name: eventgrad, mixing: {name: arrival}, correction: {name: drift, strength: 0.0125}}";
constexpr std::string_view int8 = "{quantiser: {name: int8}}", two_bit = "{quantiser: {name: two_bit}}";
constexpr std::array sections{
    Sections{"D-PSGD", "{name: dpsgd, correction: {name: drift}}", "", ""},
    Sections{"int8, always", events, "{name: always}", int8},
    Sections{"int8, events 0.5", events, "{name: adaptive, horizon: 0.5, maximum_silence: 10}", int8},
    Sections{"int8, events 1", events, "{name: adaptive, horizon: 1, maximum_silence: 10}", int8},
    Sections{"int8, events 2", events, "{name: adaptive, horizon: 2, maximum_silence: 10}", int8},
    Sections{"int8, events 2, strength 0.0125", weakly, "{name: adaptive, horizon: 2, maximum_silence: 10}", int8},
    Sections{"2 bits, every 3rd", events, "{name: periodic, period: 3, warmup_iterations: 0}", two_bit},
    Sections{"2 bits, every 7th", events, "{name: periodic, period: 7, warmup_iterations: 0}", two_bit}};

/// The parts of `text` between `separator`s.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

template <class Number>
Number number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::logic_error("front.hpp: '" + std::string(text) + "' is no number");
  return value;
}

Shares shares_of(std::string_view name) {
  if (name == "iid") return Shares::alike;
  if (name == "dirichlet") return Shares::dirichlet;
  if (name == "shards") return Shares::sorted;
  throw std::logic_error("front.hpp: shares '" + std::string(name) + "'");
}

double uniform_gap(std::string_view graph, int ranks) {
  Config config = Config::from_text("{graph: {name: " + std::string(graph) + "}, weights: {name: uniform}}");
  return TopologyPlan(config).build(ranks).spectrum().gap;
}

/// The cell of a row, the last one if the row goes on with it.
MeasuredCell& cell_of(std::vector<MeasuredCell>& cells, Shares shares, std::string_view graph, int ranks) {
  if (cells.empty() || cells.back().shares != shares || cells.back().graph != graph || cells.back().ranks != ranks)
    cells.push_back({.shares = shares,
                     .graph = std::string(graph),
                     .ranks = ranks,
                     .gap = uniform_gap(graph, ranks),
                     .all_reduce = {},
                     .plain_dpsgd = {},
                     .corrected = {}});
  return cells.back();
}

}  // namespace

std::vector<MeasuredCell> measured_cells() {
  std::vector<MeasuredCell> cells;
  for (const std::string_view row : split(measured_front, "\n")) {
    if (row.empty()) continue;
    const auto fields = split(row, " | ");
    if (fields.size() != 8) throw std::logic_error("front.hpp: '" + std::string(row) + "'");
    MeasuredCell& cell = cell_of(cells, shares_of(fields[0]), fields[1], number<int>(fields[2]));
    const std::string_view method = fields[3];
    const Reached reached{
        .accuracy = number<double>(fields[5]), .worst = number<double>(fields[6]), .bytes = number<double>(fields[7])};
    if (fields[4] == "drift")
      cell.corrected.push_back({.name = std::string(method), .reached = reached});
    else
      (method == "all-reduce" ? cell.all_reduce : cell.plain_dpsgd) = reached;
  }
  for (const MeasuredCell& cell : cells)
    if (cell.corrected.empty()) throw std::logic_error("front.hpp: no method for " + cell.graph);
  return cells;
}

const MeasuredCell& nearest_cell(std::span<const MeasuredCell> cells, Shares shares, double gap) {
  constexpr double least = 1e-6;  // a longer ring than anybody trains on
  const MeasuredCell* nearest = nullptr;
  const auto distance = [&](const MeasuredCell& cell) { return std::abs(std::log(std::max(gap, least) / cell.gap)); };
  for (const MeasuredCell& cell : cells)
    if (cell.shares == shares && (!nearest || distance(cell) < distance(*nearest))) nearest = &cell;
  if (!nearest) throw std::logic_error("front.hpp: nothing about such shares");
  return *nearest;
}

const MeasuredCell::Method& best_method(const MeasuredCell& cell, double bytes_fraction) {
  const double most_bytes = 100.0 * within_budget * bytes_fraction;
  double best = 0.0;
  for (const MeasuredCell::Method& method : cell.corrected)
    if (method.reached.bytes <= most_bytes) best = std::max(best, method.reached.accuracy);
  const MeasuredCell::Method* chosen = nullptr;
  for (const MeasuredCell::Method& method : cell.corrected)
    if (method.reached.accuracy >= best - as_accurate && (!chosen || method.reached.bytes < chosen->reached.bytes))
      chosen = &method;
  return *chosen;
}

std::vector<std::string> settings_of(std::string_view method) {
  for (const Sections& of : sections) {
    if (of.method != method) continue;
    std::vector<std::string> all{"exchange=" + std::string(of.exchange)};
    // A section that the exchange does not open would be an error.
    if (!of.trigger.empty()) all.push_back("trigger=" + std::string(of.trigger));
    if (!of.sparsify.empty()) all.push_back("sparsify=" + std::string(of.sparsify));
    return all;
  }
  throw std::logic_error("front.hpp: method '" + std::string(method) + "'");
}

}  // namespace hearsay
