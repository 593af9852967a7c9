#pragma once
// The training loop of runtime/exchange/exchange.hpp without LibTorch, on one rank and on all ranks of a local job.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/participant.hpp"
#include "runtime/replica/block_state.hpp"
#include "tests/reference/simulation.hpp"
#include "tests/support/announce.hpp"
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
    root.document().throw_if_invalid();
  }
  Config section_;
  TopologyPlan topology_;
  std::unique_ptr<ExchangePlan> exchange_;
};

/// What a rank does with its gradient: SGD, with momentum, or Adam (beta1 = 0.9, beta2 = 0.999).
struct Descent {
  double learning_rate = 0.1;
  double momentum = 0.0;
  bool adam = false;
  Iteration first_step = 0;       ///< before it the optimizer rests
  Iteration falls_to_0_over = 0;  ///< iterations in which the learning rate does; 0: never

  float rate(Iteration k) const {
    const double left = falls_to_0_over == 0 ? 1.0 : 1.0 - static_cast<double>(k) / double(falls_to_0_over);
    return static_cast<float>(learning_rate * left);
  }
  StepResponse response() const {
    if (!adam) return {.learning_rate = learning_rate, .momentum = momentum};
    return {.learning_rate = learning_rate,
            .momentum = 0.9,
            .dampening = 0.9,
            .normalised = StepResponse::Normalised{.memory = 0.999, .epsilon = 1e-8}};
  }
};

/// x_{k+1} ← exchange(x_k) − η g(x_k) on one rank, from the replica as it is.
class RankTrainer {
 public:
  RankTrainer(Participant& member, const reference::GradientSource& problem, const Descent& descent)
      : member_(member),
        replica_(member.replica()),
        problem_(problem),
        descent_(descent),
        velocity_(replica_.layout.size()),
        squares_(replica_.layout.size()) {}

  void start(Iteration k) {
    member_.start(k);
    const std::vector<float> x = fetched(*replica_.device, replica_.values.span());
    std::vector<float> g(x.size());
    problem_.gradient(member_.edges().rank(), k, x, g);
    put(g, replica_.gradients);
    announce_gradients(member_);
  }
  void finish(Iteration k) {
    member_.learning_rate(descent_.rate(k));
    member_.finish(k);
    if (k >= descent_.first_step) step(k);
    member_.stepped(k);
    const auto events = measures_of(member_.exchange()).events();
    outcome_.events.emplace_back(events.begin(), events.end());
  }
  /// All of this rank's end of the job, x and what the optimizer remembers included.
  void state(Archive& archive) {
    block_state(archive, "x", *replica_.device, replica_.values.span());
    archive.values("velocity", std::span(velocity_));
    archive.values("squares", std::span(squares_));
    member_.state(archive);
  }
  /// Ends the participant.
  RankOutcome outcome() {
    member_.leave();
    outcome_.x = fetched(*replica_.device, replica_.values.span());
    outcome_.hash = replica_hash(outcome_.x);
    read_ledger();
    return std::move(outcome_);
  }

 private:
  void step(Iteration k) {
    std::vector<float> x = fetched(*replica_.device, replica_.values.span());
    const std::vector<float> g = fetched(*replica_.device, replica_.gradients.span());
    if (descent_.adam)
      adam(k, g, x);
    else
      sgd(k, g, x);
    put(x, replica_.values);
  }
  void sgd(Iteration k, std::span<const float> g, std::span<float> x) {
    for (std::size_t e = 0; e < x.size(); ++e) {
      velocity_[e] = static_cast<float>(descent_.momentum) * velocity_[e] + g[e];
      x[e] -= descent_.rate(k) * velocity_[e];
    }
  }
  void adam(Iteration k, std::span<const float> g, std::span<float> x) {
    const auto power = static_cast<double>(k + 1);
    for (std::size_t e = 0; e < x.size(); ++e) {
      velocity_[e] = 0.9F * velocity_[e] + 0.1F * g[e];
      squares_[e] = 0.999F * squares_[e] + 0.001F * g[e] * g[e];
      const double root = std::sqrt(squares_[e] / (1.0 - std::pow(0.999, power)));
      x[e] -= static_cast<float>(descent_.rate(k) * velocity_[e] / (1.0 - std::pow(0.9, power)) / (root + 1e-8));
    }
  }
  void put(std::span<const float> here, FloatBlock& block) { replica_.device->put(std::as_bytes(here), block.span()); }

  void read_ledger() {
    const Ledger& ledger = member_.ledger();
    for (SegmentId s = 0; s < ledger.segments(); ++s) {
      outcome_.segment_events.push_back(ledger.segment(s).events.value());
      outcome_.segment_messages.push_back(ledger.segment(s).messages.value());
      outcome_.segment_payload_bytes.push_back(ledger.segment(s).payload_bytes.value());
    }
    outcome_.totals = ledger.totals();
  }

  Participant& member_;
  Parameters& replica_;
  const reference::GradientSource& problem_;
  const Descent descent_;
  std::vector<float> velocity_, squares_;
  RankOutcome outcome_;
};

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

/// `one_thread`: all ranks on one thread, phase by phase, unless ranks wait for each other within a phase; else every
/// rank on a thread of its own, with or without another one for its communication.
enum class Ranks { one_thread, threads, threads_with_communication_threads };

struct JobOptions {
  int ranks = 4;
  Descent descent{};
  std::optional<StepResponse> response = std::nullopt;  ///< what the participants are told instead of its own
  Iteration iterations = 60;
  Ranks run = Ranks::one_thread;
  /// May give every rank its own x before the first iteration; what its neighbours know of it stays the common x_0.
  std::function<void(LocalRank&)> prepare = [](LocalRank&) {};
  std::function<std::shared_ptr<Device>(int rank)> device = [](int) { return processor(); };  ///< as LocalJob has it
};

inline RankTrainer make_trainer(LocalRank& rank, const reference::GradientSource& problem, const JobOptions& options) {
  {
    const ComputeSlice slice(*rank.replica.device);
    options.prepare(rank);
  }
  return RankTrainer(rank.member, problem, options.descent);
}

inline void train_on_one_thread(const LocalJob& job, const reference::GradientSource& problem,
                                const JobOptions& options, JobOutcome& outcome) {
  LocalWorld world(job);
  std::vector<std::unique_ptr<LocalRank>> ranks;
  std::vector<RankTrainer> trainers;
  for (int r = 0; r < options.ranks; ++r) {
    ranks.push_back(world.make_rank(r));
    trainers.push_back(make_trainer(*ranks.back(), problem, options));
  }
  for (Iteration k = 0; k < options.iterations; ++k) {
    for (auto& trainer : trainers) trainer.start(k);
    for (auto& trainer : trainers) trainer.finish(k);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) outcome.ranks[r] = trainers[r].outcome();
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
                     .plan = plan.exchange(),
                     .engine = options.run == Ranks::threads_with_communication_threads ? EngineKind::thread_engine
                                                                                        : EngineKind::inline_engine,
                     .device = options.device,
                     .step = options.response.value_or(options.descent.response())};
  const bool waits_at_start = plan.exchange().moves_at_start() && plan.exchange().schedule() == Schedule::lockstep;
  if (options.run == Ranks::one_thread && !waits_at_start) {
    train_on_one_thread(job, problem, options, outcome);
    return outcome;
  }
  run_local_ranks(job, [&](LocalRank& rank) {
    RankTrainer trainer = make_trainer(rank, problem, options);
    for (Iteration k = 0; k < options.iterations; ++k) {
      trainer.start(k);
      trainer.finish(k);
    }
    outcome.ranks[static_cast<std::size_t>(rank.rank())] = trainer.outcome();
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
