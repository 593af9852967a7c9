#include "apps/bench/between_ranks/collectives.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/bench/between_ranks/oracle.hpp"
#include "base/timing.hpp"
#include "runtime/collectives/gtopk.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/peers.hpp"

namespace hearsay {
namespace {

constexpr std::size_t bytes_per_entry = 8;  // a value and a position

/// What a sparse sum gives a rank.
struct Outcome {
  SparseVector result, returned;
};

struct DenseAlgorithm {
  std::string_view name;
  void (*run)(const Group& group, std::span<float> values);
};

enum class Result { sum, largest_of_sum, truncated };

struct SparseAlgorithm {
  std::string_view name;
  Result result;
  CommunicationCost (*cost)(int ranks, std::size_t message_bytes);
  Outcome (*run)(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k);
};

Outcome gathered(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t) {
  SparseSum sum = gathered_sum(group, own, wire);
  return {.result = std::move(sum.total), .returned = std::move(sum.returned)};
}

/// As the exchange `gtopk_naive` does it.
Outcome gathered_and_cut(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) {
  SparseVector total = gathered_sum(group, own, wire).total;
  Truncation().keep_largest(total, k);
  SparseVector returned = without(own, total.indices);
  return {.result = std::move(total), .returned = std::move(returned)};
}

template <GTopKResult (*collective)(const Group&, const SparseVector&, const SparseWire&, const GTopKOptions&)>
Outcome merged(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) {
  GTopKResult found = collective(group, own, wire, {.k = k, .rule = ResidualRule::merger});
  return {.result = std::move(found.result), .returned = std::move(found.returned)};
}

constexpr std::array dense_algorithms{
    DenseAlgorithm{"library", [](const Group& group, std::span<float> values) { group.peers().library_sum(values); }},
    DenseAlgorithm{"ring", ring_all_reduce},
};
constexpr std::array sparse_algorithms{
    SparseAlgorithm{"topk", Result::sum, gather_cost, gathered},
    SparseAlgorithm{"gtopk_naive", Result::largest_of_sum, gather_cost, gathered_and_cut},
    SparseAlgorithm{"gtopk_tree", Result::truncated, tree_cost, merged<gtopk_tree>},
    SparseAlgorithm{"gtopk_butterfly", Result::truncated, butterfly_cost, merged<gtopk_butterfly>},
};

Codec plain_codec() {
  Config positions, values;
  return {chosen_entry(position_coders(), positions, "plain", "how positions are written").make(positions),
          chosen_entry(quantisers(), values, "none", "how values are written").make(values)};
}

class Bench {
 public:
  Bench(const CollectivesOptions& options, const std::function<void(const BenchStep&)>& begun)
      : options_(options),
        begun_(begun),
        peers_({.sent = [this](int, const Message& message) { sent_bytes_ += message.bytes.size(); }}),
        group_(peers_),
        codec_(plain_codec()) {}

  CollectivesReport run();

 private:
  void measure_model();
  void measure_dense(std::size_t m);
  void measure_sparse(std::size_t m, double density);
  void check(const SparseAlgorithm& algorithm, const SparseWire& wire, std::size_t m, std::size_t k);
  void begin(std::string_view algorithm, std::size_t m, std::optional<double> density);
  template <class Prepare, class Call>
  void time(CollectiveTiming timing, const CommunicationCost& cost, Prepare prepare, Call call);
  /// The whole-number entries of every rank, which nobody needs to be asked for.
  std::vector<SparseVector> all_whole(std::size_t m, std::size_t k) const;
  /// On rank 0 every rank's vector.
  std::vector<SparseVector> gather(const SparseWire& wire, const SparseVector& own);

  const CollectivesOptions& options_;
  const std::function<void(const BenchStep&)>& begun_;
  std::uint64_t sent_bytes_ = 0;  // since it was last set to 0
  mpi::Communicator world_;
  mpi::Peers peers_;
  Group group_;
  Codec codec_;
  CollectivesReport report_;
  int steps_ = 0;
};

CollectivesReport Bench::run() {
  report_.ranks = peers_.size();
  report_.machines = 1 + std::ranges::max(peers_.nodes());
  measure_model();
  for (const std::size_t m : options_.values) {
    measure_dense(m);
    for (const double density : options_.densities) measure_sparse(m, density);
  }
  return std::move(report_);
}

void Bench::measure_model() {
  const int rank = peers_.rank();
  if (rank < 2) report_.ping_pong = ping_pong(peers_, 1 - rank, rank == 0, options_.calls);
  if (peers_.rank() == 0) report_.model = fitted(report_.ping_pong);
  world_.barrier();
}

void Bench::begin(std::string_view algorithm, std::size_t m, std::optional<double> density) {
  const std::size_t per_length = dense_algorithms.size() + options_.densities.size() * sparse_algorithms.size();
  std::string what = std::string(algorithm) + " of " + std::to_string(m) + " values";
  if (density) what += ", " + std::to_string(kept_count(*density, m)) + " entries a rank";
  begun_({.index = ++steps_, .count = static_cast<int>(options_.values.size() * per_length), .what = std::move(what)});
}

template <class Prepare, class Call>
void Bench::time(CollectiveTiming timing, const CommunicationCost& cost, Prepare prepare, Call call) {
  constexpr std::size_t least = 5;
  std::vector<double> seconds;
  double total = 0.0;
  while (seconds.size() < static_cast<std::size_t>(options_.calls) &&
         (seconds.size() < least || total < options_.seconds)) {
    prepare();
    world_.barrier();
    sent_bytes_ = 0;
    const double own = seconds_taken(call);
    // The same numbers on all ranks, so all of them stop at the same call.
    std::array<double, 2> highest{own, static_cast<double>(sent_bytes_)};
    world_.maximum(highest);
    seconds.push_back(highest[0]);
    total += highest[0];
    timing.bytes_sent = static_cast<std::uint64_t>(highest[1]);
  }
  timing.calls = static_cast<int>(seconds.size());
  timing.median_s = median(seconds);
  timing.p99_s = quantile(std::move(seconds), 0.99);
  timing.predicted_s = cost.seconds(report_.model);
  report_.timings.push_back(timing);
}

std::vector<SparseVector> Bench::all_whole(std::size_t m, std::size_t k) const {
  std::vector<SparseVector> entries;
  for (int rank = 0; rank < peers_.size(); ++rank) entries.push_back(whole_entries(options_.seed, rank, m, k));
  return entries;
}

void Bench::measure_dense(std::size_t m) {
  std::vector<float> values(m);
  const auto fill = [&](const SparseVector& entries) {
    std::ranges::fill(values, 0.0F);
    add_to(values, entries);
  };
  // Few values in many zeros: dense algorithms do not care, and the oracle needs no second block.
  const std::size_t k = kept_count(0.01, m);
  const SparseVector own = normal_entries(options_.seed, peers_.rank(), m, k);
  const std::vector<SparseVector> whole = all_whole(m, k);
  const SparseVector expected = exact_sum(whole);
  for (const DenseAlgorithm& algorithm : dense_algorithms) {
    begin(algorithm.name, m, std::nullopt);
    fill(whole[static_cast<std::size_t>(peers_.rank())]);
    algorithm.run(group_, values);
    require_dense(algorithm.name, peers_.rank(), values, expected);
    time(
        {.algorithm = algorithm.name, .values = m, .k = m}, ring_cost(peers_.size(), m), [&] { fill(own); },
        [&] { algorithm.run(group_, values); });
  }
}

std::vector<SparseVector> Bench::gather(const SparseWire& wire, const SparseVector& own) {
  std::vector<SparseVector> all;
  for (const auto& bytes : world_.gather(wire.encode(own).bytes)) all.push_back(wire.decode(bytes));
  return all;
}

void Bench::check(const SparseAlgorithm& algorithm, const SparseWire& wire, std::size_t m, std::size_t k) {
  const int rank = peers_.rank();
  const std::vector<SparseVector> whole = all_whole(m, k);
  const Outcome outcome = algorithm.run(group_, whole[static_cast<std::size_t>(rank)], wire, k);
  if (algorithm.result != Result::truncated) {
    const SparseVector all = exact_sum(whole);
    require_sparse(algorithm.name, rank, outcome.result, algorithm.result == Result::sum ? all : exact_largest(all, k));
  }
  if (algorithm.result == Result::sum) return;
  const TruncatedSums sums{.results = gather(wire, outcome.result), .returned = gather(wire, outcome.returned)};
  if (rank == 0) require_truncated(algorithm.name, sums, whole, k);
}

void Bench::measure_sparse(std::size_t m, double density) {
  const std::size_t k = kept_count(density, m);
  const SparseWire wire(codec_, m, {});
  const SparseVector own = normal_entries(options_.seed, peers_.rank(), m, k);
  for (const SparseAlgorithm& algorithm : sparse_algorithms) {
    begin(algorithm.name, m, density);
    check(algorithm, wire, m, k);
    time(
        {.algorithm = algorithm.name, .values = m, .density = density, .k = k},
        algorithm.cost(peers_.size(), bytes_per_entry * k), [] {}, [&] { algorithm.run(group_, own, wire, k); });
  }
}

}  // namespace

CollectivesReport measure_collectives(const CollectivesOptions& options,
                                      const std::function<void(const BenchStep&)>& begun) {
  return Bench(options, begun).run();
}

}  // namespace hearsay
