// How a topology is made of its two sections, and what is asked of W before anybody trains with it.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "topology/graph_tools.hpp"
#include "topology/topology.hpp"

namespace hearsay {
namespace {

constexpr double tolerance = 1e-9;
constexpr double smallest_gap = 1e-10;  // rounding of the eigenvalues is far below; a path of 100,000 ranks is above

std::string entry_name(int i, int j) { return "w(" + std::to_string(i) + ", " + std::to_string(j) + ")"; }

/// The largest of the things that are wrong, with what to say of it.
struct Worst {
  double excess = tolerance;
  std::string message{};

  template <class Message>
  void consider(double candidate, Message describe) {
    if (candidate <= excess) return;
    excess = candidate;
    message = describe();
  }
  void throw_if_any() const {
    if (!message.empty()) throw ConfigError("topology.weights: " + message);
  }
};

void check_finite(const MixingMatrix& w) {
  for (int i = 0; i < w.size(); ++i)
    for (const auto& [j, value] : w.row(i))
      if (!std::isfinite(value))
        throw ConfigError("topology.weights: " + entry_name(i, j) + " = " + number_text(value, 10) +
                          "; give a finite weight");
}

/// Columns; rows, too, unless the graph is directed.
void check_sums(const MixingMatrix& w, bool directed) {
  Worst worst;
  std::vector<double> columns(static_cast<std::size_t>(w.size()));
  const auto consider = [&](const char* which, int index, double sum) {
    worst.consider(std::abs(sum - 1.0), [&] {
      return std::string(which) + " " + std::to_string(index) + " of W sums to " + number_text(sum, 10) +
             ", not to 1; correct its weights or use weights: {name: metropolis}";
    });
  };
  for (int i = 0; i < w.size(); ++i) {
    double row = 0.0;
    for (const auto& [j, value] : w.row(i)) {
      row += value;
      columns[static_cast<std::size_t>(j)] += value;
    }
    if (!directed) consider("row", i, row);
  }
  for (int j = 0; j < w.size(); ++j) consider("column", j, columns[static_cast<std::size_t>(j)]);
  worst.throw_if_any();
}

void check_symmetry(const MixingMatrix& w) {
  Worst worst;
  for (int row = 0; row < w.size(); ++row)
    for (const auto& [column, value] : w.row(row)) {
      const int i = std::max(row, column), j = std::min(row, column);
      worst.consider(std::abs(w(i, j) - w(j, i)), [&] {
        return "W is not symmetric: " + entry_name(i, j) + " = " + number_text(w(i, j), 10) + ", " + entry_name(j, i) +
               " = " + number_text(w(j, i), 10) + "; give both directions of an edge the same weight";
      });
    }
  worst.throw_if_any();
}

void check_support(const MixingMatrix& w, const Graph& graph) {
  const auto refuse = [&](int i, int j, const std::string& why) {
    throw ConfigError("topology.weights: " + entry_name(i, j) + " = " + number_text(w(i, j), 10) + why);
  };
  for (int i = 0; i < w.size(); ++i) {
    const auto vertex = static_cast<std::size_t>(i);
    for (const auto& [j, value] : w.row(i))
      if (j != i && value != 0.0 && !boost::edge(vertex, static_cast<std::size_t>(j), graph).second)
        refuse(i, j, ", but the graph has no such edge; add it or leave it out of W");
    for (const auto j : boost::make_iterator_range(boost::adjacent_vertices(vertex, graph)))
      if (w(i, static_cast<int>(j)) <= 0.0)
        refuse(i, static_cast<int>(j), " on an edge of the graph; give it a weight > 0");
  }
}

std::int64_t count_arcs(const Targets& targets) {
  std::int64_t arcs = 0;
  for (const auto& of_rank : targets) arcs += static_cast<std::int64_t>(of_rank.size());
  return arcs;
}

/// Makes what the section's `name` asks for, and says which that is.
template <class Interface>
std::unique_ptr<Interface> make_chosen(std::span<const Entry<Interface>> table, Config section,
                                       std::string_view fallback, std::string_view meaning, std::string& name) {
  const Entry<Interface>& entry = chosen_entry(table, section, fallback, meaning);
  name = entry.name;
  return entry.make(section);
}

/// Whether the gap is certain without eigenvalues. With every weight of a connected graph, the ranks' own included, at
/// least w, 1 − λ_2 ≥ w λ_2(L) ≥ 4 w / P², L the graph's Laplacian, and 1 + λ_n ≥ 2 w. All rules without a file but
/// `best_constant` give every weight at least 1/P.
bool surely_contracts(const MixingMatrix& w) {
  const double least = 0.5 / w.size();
  for (int i = 0; i < w.size(); ++i) {
    if (w(i, i) < least) return false;
    for (const auto& weight : w.row(i))
      if (weight.value < least) return false;
  }
  return true;
}

/// The same of a period: with both weights positive the phases' union decides, which is connected.
bool surely_contracts(std::span<const GraphPhase> phases, double weight) {
  const double least = 0.5 / static_cast<double>(phases[0].size());
  return std::min(weight, 1.0 - weight) >= least;
}

/// Throws ConfigError unless differences between replicas die out.
void require_gap(const Topology& t) {
  if (t.changes() ? surely_contracts(t.phases, t.phase_weight) : surely_contracts(t.matrix)) return;
  const Spectrum& s = t.spectrum();
  if (s.gap < smallest_gap)
    throw ConfigError("topology.weights '" + t.weights_name + "': the spectral gap of W is " + number_text(s.gap, 10) +
                      " (eigenvalues from " + number_text(s.smallest, 10) + " to " + number_text(s.second, 10) +
                      " beside the 1), so that replicas never agree; raise the self-weights");
}

/// What a rank's one peer counts: the two are a graph of their own.
double pair_weight(const WeightRule& rule) {
  Graph pair(2);
  boost::add_edge(0, 1, pair);
  const MixingMatrix matrix = rule.weigh(pair);
  matrix.check(pair);
  return matrix(0, 1);
}

}  // namespace

void MixingMatrix::check(const Graph& graph) const {
  if (vertex_count(graph) != size()) throw std::logic_error("W and the graph differ in size");
  check_finite(*this);
  check_symmetry(*this);
  check_sums(*this, false);
  check_support(*this, graph);
}

void MixingMatrix::check_shares(const Targets& targets) const {
  if (static_cast<int>(targets.size()) != size()) throw std::logic_error("W and the graph differ in size");
  check_finite(*this);
  check_sums(*this, true);
  std::int64_t positive = 0;
  for (int i = 0; i < size(); ++i)
    positive += std::ranges::count_if(row(i), [](const Weight& w) { return w.value > 0; });
  bool complete = positive == count_arcs(targets) + size();
  for (int j = 0; j < size(); ++j) {
    complete = complete && (*this)(j, j) > 0.0;
    for (const int i : targets[static_cast<std::size_t>(j)]) complete = complete && (*this)(i, j) > 0.0;
  }
  if (!complete)
    throw ConfigError(
        "topology.weights: every rank must keep a share of its own and give one to all that it sends to, and to "
        "nobody else; use weights: {name: uniform}");
}

MixingMatrix WeightRule::share(const Targets&) const {
  throw ConfigError(
      "topology.weights: this rule gives both ways of an edge one weight, and the graph is directed; use weights: "
      "{name: uniform}");
}

TopologyPlan::TopologyPlan(Config& config)
    : family_(make_chosen(graphs(), config.section("graph"), "ring", "who may talk to whom", graph_name_)),
      rule_(make_chosen(weight_rules(), config.section("weights"), "metropolis",
                        "how much each neighbour's model counts", weights_name_)) {}

TopologyPlan TopologyPlan::everybody() {
  TopologyPlan plan;
  plan.graph_name_ = "complete";
  plan.weights_name_ = "uniform";
  return plan;
}

Topology TopologyPlan::build(int ranks) const {
  if (!family_)
    return {.graph = isolated_vertices(ranks),
            .matrix = MixingMatrix(0),
            .graph_name = graph_name_,
            .weights_name = weights_name_,
            .everybody = true};
  if (directed()) return build_directed(ranks);
  Graph graph = family_->build(ranks);
  require_connected(graph, "topology.graph '" + graph_name_ + "'");
  std::vector<GraphPhase> phases = family_->phases(ranks);
  std::ranges::for_each(phases, require_permutation);
  const double weight = phases.empty() ? 0.0 : pair_weight(*rule_);
  MixingMatrix matrix = phases.empty() ? rule_->weigh(graph) : mean_matrix(phases, weight);
  matrix.check(graph);
  Topology topology{std::move(graph), std::move(matrix), graph_name_, weights_name_, std::move(phases), weight};
  require_gap(topology);
  return topology;
}

// A rank that keeps a share of its own in a strongly connected graph: differences die out, whatever the shares are.
Topology TopologyPlan::build_directed(int ranks) const {
  const Targets targets = family_->targets(ranks);
  require_strongly_connected(targets, "topology.graph '" + graph_name_ + "'");
  MixingMatrix shares = rule_->share(targets);
  shares.check_shares(targets);
  return {.graph = both_ways(targets),
          .matrix = std::move(shares),
          .graph_name = graph_name_,
          .weights_name = weights_name_,
          .arcs = count_arcs(targets)};
}

}  // namespace hearsay
