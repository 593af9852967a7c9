#pragma once
// The training loop of runtime/exchange/exchange.hpp without LibTorch, on one rank and on all ranks of a local job.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exchange/exchange.hpp"
#include "tests/reference/simulation.hpp"
#include "tests/support/local_ranks.hpp"

namespace hearsay::test {

/// What one rank did.
struct RankOutcome {
  std::vector<float> x;                   ///< after the last step
  std::uint64_t hash = 0;                 ///< of x
  std::vector<std::vector<bool>> events;  ///< (iterations, segments)
  std::vector<std::uint64_t> segment_events, segment_messages, segment_payload_bytes;
  LedgerTotals totals;
};

/// The sections `topology`, `exchange`, `trigger` and `sparsify` of a configuration, read and checked. Throws
/// ConfigError.
class Plan {
 public:
  explicit Plan(const std::string& yaml) : Plan(Config::from_text(yaml)) {}
  Topology topology(int ranks) const { return topology_.build(ranks); }
  const ExchangePlan& exchange() const { return *exchange_; }

 private:
  explicit Plan(Config root) : section_(root.section("topology")), topology_(section_), exchange_(plan_exchange(root)) {
    root.throw_if_invalid();
  }
  Config section_;
  TopologyPlan topology_;
  std::unique_ptr<ExchangePlan> exchange_;
};

/// x_{k+1} ← exchange(x_k) − η g(x_k) on one rank, from the replica as it is.
class RankTrainer {
 public:
  RankTrainer(std::unique_ptr<Exchange> exchange, Parameters& replica, int rank,
              const reference::GradientSource& problem, double learning_rate)
      : exchange_(std::move(exchange)),
        replica_(replica),
        rank_(rank),
        problem_(problem),
        rate_(static_cast<float>(learning_rate)) {}

  void start(Iteration k) {
    exchange_->start(k);
    const auto events = exchange_->events();
    outcome_.events.emplace_back(events.begin(), events.end());
    const std::vector<float> x = fetched(*replica_.device, replica_.values.span());
    std::vector<float> g(x.size());
    problem_.gradient(rank_, k, x, g);
    put(g, replica_.gradients);
    for (std::size_t s = replica_.layout.count(); s-- > 0;) exchange_->gradient_ready(static_cast<SegmentId>(s));
  }
  void finish(Iteration k) {
    exchange_->finish(k);
    std::vector<float> x = fetched(*replica_.device, replica_.values.span());
    const std::vector<float> g = fetched(*replica_.device, replica_.gradients.span());
    for (std::size_t e = 0; e < x.size(); ++e) x[e] -= rate_ * g[e];
    put(x, replica_.values);
    exchange_->stepped(k);
  }
  /// Ends the exchange. The ledger's numbers are not in it yet.
  RankOutcome outcome() {
    exchange_.reset();
    outcome_.x = fetched(*replica_.device, replica_.values.span());
    outcome_.hash = replica_hash(outcome_.x);
    return std::move(outcome_);
  }

 private:
  void put(std::span<const float> here, FloatBlock& block) { replica_.device->put(std::as_bytes(here), block.span()); }

  std::unique_ptr<Exchange> exchange_;
  Parameters& replica_;
  int rank_;
  const reference::GradientSource& problem_;
  float rate_;
  RankOutcome outcome_;
};

/// What the ledger says; all engines that write to it have stopped.
inline void read_ledger(const Ledger& ledger, RankOutcome& outcome) {
  for (SegmentId s = 0; s < ledger.segments(); ++s) {
    outcome.segment_events.push_back(ledger.segment(s).events.value());
    outcome.segment_messages.push_back(ledger.segment(s).messages.value());
    outcome.segment_payload_bytes.push_back(ledger.segment(s).payload_bytes.value());
  }
  outcome.totals = ledger.totals();
}

/// What all ranks did.
struct JobOutcome {
  std::vector<RankOutcome> ranks;
  std::int64_t directed_edges = 0;

  LedgerTotals totals() const {
    LedgerTotals sum;
    for (const RankOutcome& rank : ranks) {
      sum.events += rank.totals.events;
      sum.messages += rank.totals.messages;
      sum.deferred += rank.totals.deferred;
      sum.packets += rank.totals.packets;
      sum.payload_bytes += rank.totals.payload_bytes;
      sum.index_bytes += rank.totals.index_bytes;
      sum.header_bytes += rank.totals.header_bytes;
    }
    return sum;
  }
  std::vector<std::uint64_t> hashes() const {
    std::vector<std::uint64_t> all;
    for (const RankOutcome& rank : ranks) all.push_back(rank.hash);
    return all;
  }
};

/// `in_turns`: all ranks on one thread, phase by phase; else every rank on a thread of its own, with or without another
/// one for its communication.
enum class Ranks { in_turns, threads, threads_with_communication_threads };

struct JobOptions {
  int ranks = 4;
  double learning_rate = 0.1;
  Iteration iterations = 60;
  Ranks run = Ranks::in_turns;
  /// May give every rank its own x before the first iteration; what its neighbours know of it stays the common x_0.
  std::function<void(LocalRank&)> prepare = [](LocalRank&) {};
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };  ///< as LocalJob has it
};

inline RankTrainer make_trainer(const ExchangePlan& plan, LocalRank& rank, const reference::GradientSource& problem,
                                const JobOptions& options) {
  auto exchange = build_exchange(plan, rank.context());
  {
    const ComputeTurn turn(*rank.replica.device);
    options.prepare(rank);
  }
  return RankTrainer(std::move(exchange), rank.replica, rank.rank(), problem, options.learning_rate);
}

inline RankOutcome close(RankTrainer& trainer, LocalRank& rank) {
  RankOutcome outcome = trainer.outcome();
  rank.stop_engine();
  read_ledger(rank.ledger, outcome);
  return outcome;
}

inline void train_in_turns(const ExchangePlan& plan, const LocalJob& job, const reference::GradientSource& problem,
                           const JobOptions& options, JobOutcome& outcome) {
  LocalWorld world(job);
  std::vector<std::unique_ptr<LocalRank>> ranks;
  std::vector<RankTrainer> trainers;
  for (int r = 0; r < options.ranks; ++r) {
    ranks.push_back(world.make_rank(r));
    trainers.push_back(make_trainer(plan, *ranks.back(), problem, options));
  }
  for (Iteration k = 0; k < options.iterations; ++k) {
    for (auto& trainer : trainers) trainer.start(k);
    for (auto& trainer : trainers) trainer.finish(k);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) outcome.ranks[r] = close(trainers[r], *ranks[r]);
}

inline JobOutcome train_locally(const std::string& yaml, const Layout& layout, std::span<const float> initial,
                                const reference::GradientSource& problem, const JobOptions& options) {
  const Plan plan(yaml);
  const Topology topology = plan.topology(options.ranks);
  JobOutcome outcome{.ranks = std::vector<RankOutcome>(static_cast<std::size_t>(options.ranks)),
                     .directed_edges = topology.directed_edges()};
  const LocalJob job{.topology = topology,
                     .layout = layout,
                     .initial = initial,
                     .packet_bound = plan.exchange().packet_bound(layout),
                     .engine = options.run == Ranks::threads_with_communication_threads ? EngineKind::thread_engine
                                                                                        : EngineKind::inline_engine,
                     .device = options.device};
  if (options.run == Ranks::in_turns) {
    train_in_turns(plan.exchange(), job, problem, options, outcome);
    return outcome;
  }
  run_local_ranks(job, [&](LocalRank& rank) {
    const Plan own(yaml);  // a Config must not be shared between threads
    RankTrainer trainer = make_trainer(own.exchange(), rank, problem, options);
    for (Iteration k = 0; k < options.iterations; ++k) {
      trainer.start(k);
      trainer.finish(k);
    }
    outcome.ranks[static_cast<std::size_t>(rank.rank())] = close(trainer, rank);
  });
  return outcome;
}

/// A gradient that is always zero: only mixing moves the replicas.
class ZeroGradient final : public reference::GradientSource {
 public:
  void gradient(int, std::int64_t, std::span<const float>, std::span<float> g) const override {
    for (float& v : g) v = 0.0F;
  }
};

}  // namespace hearsay::test
