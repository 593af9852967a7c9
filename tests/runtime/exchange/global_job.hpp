#pragma once
// Runs an exchange of the global path on every rank of a local job and keeps what it made of the gradients.
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/reference/quadratic.hpp"
#include "tests/runtime/exchange/train.hpp"
#include "tests/support/announce.hpp"

namespace hearsay::test {

using Vector = std::vector<float>;

/// The plan of `exchange:` and `sparsify:`. Throws ConfigError.
class GlobalPlan {
 public:
  explicit GlobalPlan(const std::string& yaml) : GlobalPlan(Config::from_text(yaml)) {}
  const ExchangePlan& operator*() const { return *plan_; }
  const ExchangePlan* operator->() const { return plan_.get(); }

 private:
  explicit GlobalPlan(Config root) : plan_(plan_exchange(root)) { root.document().throw_if_invalid(); }
  std::unique_ptr<ExchangePlan> plan_;
};

inline Topology complete_topology(int ranks) {
  Config config = Config::from_text("graph: {name: complete}\nweights: {name: uniform}");
  return TopologyPlan(config).build(ranks);
}

struct GlobalOptions {
  int ranks = 4;
  Iteration iterations = 5;
  EngineKind engine = EngineKind::inline_engine;
  Iteration iterations_per_epoch = 1;
  std::vector<int> nodes{};
  std::optional<std::uint64_t> delays{};  ///< as LocalJob has them
  bool keep_failure = false;              ///< nothing is rethrown: `failed_rank` tells
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };  ///< as LocalJob has it
  /// The gradient of one rank at iteration k.
  std::function<void(int rank, Iteration k, std::span<float> g)> gradient{};
};

/// (ranks, iterations, n): gradients before and after; (ranks, n) residuals at the end.
struct GlobalOutcome {
  std::vector<std::vector<Vector>> put_in, came_out;
  std::vector<Vector> residual;
  std::vector<Traffic> traffic;
  std::vector<std::vector<Share>> shares;
  std::vector<std::array<double, phase_names.size()>> seconds;
  int failed_rank = -1;  ///< the one that threw first
};

/// Small integers, different on every rank and at every iteration; most are zero or small, so there are ties.
inline void integer_gradient(int rank, Iteration k, std::span<float> g) {
  Random random(stream_seed(11, "gradient", static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(k)));
  for (float& value : g) value = static_cast<float>(static_cast<int>(random.below(17)) - 8);
}

inline void run_rank(LocalRank& rank, const GlobalOptions& options, GlobalOutcome& outcome) {
  const auto me = static_cast<std::size_t>(rank.rank());
  Device& device = *rank.replica.device;
  const auto g = rank.replica.gradients.span();
  for (Iteration k = 0; k < options.iterations; ++k) {
    rank.member.start(k);
    outcome.put_in[me].emplace_back(g.size());
    options.gradient(rank.rank(), k, outcome.put_in[me].back());
    device.put(std::as_bytes(std::span(outcome.put_in[me].back())), g);
    announce_gradients(rank.member);
    rank.member.finish(k);
    outcome.came_out[me].push_back(fetched(device, g));
    rank.member.stepped(k);
  }
  outcome.residual[me].assign(g.size(), 0.0F);
  add_residual(rank.member.exchange(), outcome.residual[me]);
  outcome.shares[me] = measures_of(rank.member.exchange()).shares();
  rank.member.leave();
  for (std::size_t phase = 0; phase < phase_names.size(); ++phase)
    outcome.seconds[me][phase] = rank.ledger.seconds(static_cast<Phase>(phase));
}

inline GlobalOutcome run_global(const std::string& yaml, const GlobalOptions& options,
                                const Layout& layout = reference::small_layout()) {
  const GlobalPlan plan(yaml);
  const Topology topology = complete_topology(options.ranks);
  const Vector initial(layout.size(), 0.0F);
  const auto ranks = static_cast<std::size_t>(options.ranks);
  GlobalOutcome outcome;
  outcome.put_in.resize(ranks);
  outcome.came_out.resize(ranks);
  outcome.residual.resize(ranks);
  outcome.shares.resize(ranks);
  outcome.seconds.resize(ranks);
  const LocalJob job{.topology = topology,
                     .layout = layout,
                     .initial = initial,
                     .plan = *plan,
                     .engine = options.engine,
                     .nodes = options.nodes,
                     .delays = options.delays,
                     .device = options.device,
                     .iterations_per_epoch = options.iterations_per_epoch};
  LocalWorld world(job);
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < options.ranks; ++r)
      threads.emplace_back([&, r] { world.run(r, [&](LocalRank& rank) { run_rank(rank, options, outcome); }); });
  }
  outcome.failed_rank = world.failed_rank();
  if (!options.keep_failure) world.rethrow();
  for (int r = 0; r < options.ranks; ++r) outcome.traffic.push_back(world.office().traffic(r));
  return outcome;
}

/// P · (t / P) = t: exact if P is a power of two; else t must be an integer, whatever the division has rounded.
inline double times_ranks(float mean, std::size_t ranks) {
  const double product = static_cast<double>(ranks) * static_cast<double>(mean);
  return std::has_single_bit(ranks) ? product : std::nearbyint(product);
}

/// Σ over iterations of P · g: what was applied.
inline std::vector<double> applied(const GlobalOutcome& outcome) {
  const auto& first = outcome.came_out.front();
  std::vector<double> sum(first.front().size());
  const std::size_t p = outcome.came_out.size();
  for (const Vector& g : first)
    for (std::size_t i = 0; i < g.size(); ++i) sum[i] += times_ranks(g[i], p);
  return sum;
}

inline std::vector<double> added(const std::vector<std::vector<Vector>>& gradients) {
  std::vector<double> sum(gradients.front().front().size());
  for (const auto& rank : gradients)
    for (const Vector& g : rank)
      for (std::size_t i = 0; i < g.size(); ++i) sum[i] += static_cast<double>(g[i]);
  return sum;
}

inline std::vector<double> owed(const GlobalOutcome& outcome) {
  std::vector<double> sum(outcome.residual.front().size());
  for (const Vector& r : outcome.residual)
    for (std::size_t i = 0; i < r.size(); ++i) sum[i] += static_cast<double>(r[i]);
  return sum;
}

/// applied + Σ residuals = Σ gradients, value by value, but for what dividing by P has rounded: half a unit in the last
/// place of every mean (a rounded sum need not be an integer).
inline bool mass_is_kept_but_for_division(const GlobalOutcome& outcome) {
  const double p = static_cast<double>(outcome.came_out.size());
  std::vector<double> left = added(outcome.put_in), allowed(left.size());
  const auto r = owed(outcome);
  for (const Vector& mean : outcome.came_out.front()) {
    for (std::size_t i = 0; i < mean.size(); ++i) {
      left[i] -= p * static_cast<double>(mean[i]);
      allowed[i] += p * std::abs(static_cast<double>(mean[i])) * 0x1.0p-24;
    }
  }
  for (std::size_t i = 0; i < left.size(); ++i)
    if (std::abs(left[i] - r[i]) > allowed[i]) return false;
  return true;
}

/// applied + Σ residuals = Σ gradients, value by value.
inline bool mass_is_kept(const GlobalOutcome& outcome) {
  const auto a = applied(outcome), r = owed(outcome), g = added(outcome.put_in);
  for (std::size_t i = 0; i < g.size(); ++i)
    if (a[i] + r[i] != g[i]) return false;
  return true;
}

/// Every rank has the same gradients, bit by bit.
inline bool all_ranks_agree(const GlobalOutcome& outcome) {
  for (const auto& rank : outcome.came_out)
    for (std::size_t k = 0; k < rank.size(); ++k)
      if (replica_hash(rank[k]) != replica_hash(outcome.came_out.front()[k])) return false;
  return true;
}

/// The two laws of every synchronous algorithm.
inline void check_laws(const std::string& yaml, const GlobalOptions& options) {
  CAPTURE(yaml);
  CAPTURE(options.ranks);
  const GlobalOutcome outcome = run_global(yaml, options);
  CHECK(mass_is_kept(outcome));
  CHECK(all_ranks_agree(outcome));
}
/// The same where values are rounded before they are added.
inline void check_laws_of_rounded(const std::string& yaml, const GlobalOptions& options) {
  CAPTURE(yaml);
  CAPTURE(options.ranks);
  const GlobalOutcome outcome = run_global(yaml, options);
  const bool exact = std::has_single_bit(static_cast<unsigned>(options.ranks));
  CHECK((exact ? mass_is_kept(outcome) : mass_is_kept_but_for_division(outcome)));
  CHECK(all_ranks_agree(outcome));
}

}  // namespace hearsay::test
