#pragma once
// An Exchange is one way for replicas to learn from each other. The training loop calls it and knows nothing more:
//
//   for k = 0, 1, …:
//     exchange.start(k)                     x_k is final: decide, encode, post; waits for nobody.
//                                           Asynchronously x_k may move by what is sent, before the gradient;
//                                           in lockstep with `strategy: diffusion` it waits and mixes here
//     loss, g = model(x_k, batch)           calls exchange.gradient_ready(s) per segment, last layer first
//     context.steps ← η of this step        for those that measure by it (ExchangeLaws::measures_steps)
//     exchange.finish(k)                    mix x, or replace g by the aggregated gradient
//     optimizer.step()                      x ← x − η g
//     exchange.stepped(k)
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/exchange/cost/cost.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/parameters.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"
#include "runtime/transport/peers.hpp"
#include "topology/topology.hpp"

namespace hearsay {

/// A fraction of something, as sums that can be added over ranks: part / whole.
struct Share {
  std::string_view name;  ///< as in summary.json, e.g. "lost_mass_fraction"
  double part = 0.0, whole = 0.0;
  double fraction() const { return whole > 0.0 ? part / whole : 0.0; }
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void start(Iteration k) = 0;
  virtual void gradient_ready(SegmentId segment) { static_cast<void>(segment); }
  virtual void finish(Iteration k) = 0;
  virtual void stepped(Iteration k) { static_cast<void>(k); }
  /// In place of an asynchronous iteration where this rank has nothing to compute: it goes on sending, mixing and
  /// serving. k rises on. True where the gradient holds something for the optimizer now: its step and `stepped` follow.
  virtual bool idle(Iteration k) { return static_cast<void>(k), false; }
  /// Asynchronous, between two rounds of an outer step, for which `start(k)` is the next: mixes with what has come, and
  /// sends what has fired and could not go. `has_to_answer`: whether there is any of that.
  virtual void answer(Iteration k) { static_cast<void>(k); }
  virtual bool has_to_answer() const { return false; }
  /// Training is over on this rank: where it is asynchronous and takes local steps, x is the model of its last round
  /// from here on. What it still sends, the `drain` that follows on all ranks takes in.
  virtual void end() {}
  /// Takes the drift correction off the gradient, as `finish` does, with what has been learnt since. For outer steps,
  /// whose difference is their gradient.
  virtual void correct() {}
  /// Everything that any rank has posted has arrived: takes in what is left. After the last iteration, or, where ranks
  /// are asynchronous, between two of them.
  virtual void drain() {}
  /// Whether `gradient_ready` is to be called: hooks in the backward pass cost time.
  virtual bool layer_wise() const { return false; }
  /// Threshold per segment that the last `start` compared norms with, and the norms; empty where there is no trigger.
  virtual std::span<const double> thresholds() const { return {}; }
  virtual std::span<const double> norms() const { return {}; }
  virtual std::span<const std::uint8_t> events() const { return {}; }
  /// Adds what this rank still owes to the sum over ranks, its residual, to `block` of n floats.
  virtual void add_residual(std::span<float> block) const { static_cast<void>(block); }
  /// Takes its part of what all ranks together owe, `sum` of n floats: all ranks together take all of it. For ranks
  /// that go on where others have stopped.
  virtual void take_residual(std::span<const float> sum) { static_cast<void>(sum); }
  /// A rank is dead; where it was a neighbour (`edge`, in the order of `Neighbourhood::neighbours`), this rank has
  /// given its weight back to itself. Between two iterations; only where ExchangePlan::survives_deaths.
  virtual void lose(std::optional<std::size_t> edge) { static_cast<void>(edge); }
  /// Behind such a neighbour, or one that this exchange has never had, there is another process from now on, which
  /// knows nothing of this rank. Each end sends the other its whole x, once; until both have it nothing else crosses
  /// the edge, and its weight is 0. Between two iterations, as the two that follow.
  virtual void begin_edge(std::size_t edge) { static_cast<void>(edge); }
  /// Whether both ends of that edge have, or are about to have, the same pair of copies.
  virtual bool edge_has_begun(std::size_t edge) const { return static_cast<void>(edge), false; }
  /// It has, and this rank has taken its weight off its own again: from now on the edge mixes.
  virtual void admit_edge(std::size_t edge) { static_cast<void>(edge); }
  /// All that it knows beside x, between two iterations (base/state/archive.hpp): asked for after `stepped`, loaded
  /// into a new one before its first `start`, which has the next k. Asynchronous ranks have settled before
  /// (Participant::settle). What a lockstep rank has sent, and nobody has used, it sends again when it loads.
  virtual void state(Archive& archive) { static_cast<void>(archive); }
  /// Where ranks are servers of a part each: x has just become the servers' model, on all ranks, and nothing is under
  /// way.
  virtual void x_is_of_servers() {}
  /// What only this algorithm can say of itself, summed up since the start on this rank.
  virtual std::vector<Share> shares() const { return {}; }
};

/// How far a gradient moves a segment.
struct StepResponse {
  /// An optimizer that divides every gradient by the root of its running mean square, or of its sum of squares.
  struct Normalised {
    double memory = 1.0;     ///< β of q ← β q + (1 − β) g², 1 − βᵏ being divided out; 1: q ← q + g²
    double epsilon = 0.0;    ///< added to the root
    bool from_zero = false;  ///< q begins with 0 as it is: 1 − βᵏ is not divided out
  };

  std::optional<double> learning_rate = std::nullopt;  ///< η ≥ 0 of the next step; nothing: not known
  double momentum = 0.0;                               ///< μ: what an earlier gradient still counts for, in [0, 1)
  double dampening = 0.0;  ///< μ = 0.9 with a dampening of 0.9 is a mean of gradients and not a sum
  bool maximize = false;   ///< x moves along its gradient, and not against it
  std::optional<Normalised> normalised = std::nullopt;

  /// What a gradient of 1, held for ever, moves x by in an iteration; where it is normalised, one whose root is 1. 0
  /// while η is not known.
  double gain() const { return learning_rate.value_or(0.0) * (1.0 - dampening) / (1.0 - momentum); }
  /// −1 where x moves along its gradient.
  double sign() const { return maximize ? -1.0 : 1.0; }
  /// Iterations that this takes to show.
  double lag() const { return 1.0 / (1.0 - momentum); }
};

/// How many iterations see the data once. Copies share the number, which a loop may learn after its exchange was made.
class EpochLength {
 public:
  EpochLength(Iteration iterations = 1) : iterations_(std::make_shared<std::atomic<Iteration>>(iterations)) {}
  /// For all copies; at least 1.
  void set(Iteration iterations) { *iterations_ = iterations; }
  /// The same time for whoever counts rounds of so many iterations.
  EpochLength in_rounds(Iteration iterations) const {
    EpochLength made = *this;
    made.round_ *= iterations;
    return made;
  }
  /// When iteration (or round) k begins, in epochs.
  double epoch(Iteration k) const {
    return static_cast<double>(k) / static_cast<double>(std::max<Iteration>(1, *iterations_ / round_));
  }

 private:
  std::shared_ptr<std::atomic<Iteration>> iterations_;
  Iteration round_ = 1;
};

/// Everything an exchange works with. All of it outlives the exchange.
struct ExchangeContext {
  const Topology& topology;
  const Neighbourhood& neighbourhood;
  Parameters& replica;  ///< already holds x_0, the same on every rank
  Mailbox& mailbox;
  CommunicationEngine& engine;
  Ledger& ledger;
  /// Messages of collectives, over all ranks; to be used inside jobs of `engine` only.
  Peers& peers;
  EpochLength iterations_per_epoch{};
  /// (segments) what the next step makes of a gradient: up to date when `finish` is called; in `start`, of the step
  /// before or after, as the loop tells it.
  std::span<const StepResponse> steps{};
  /// Ends waiting (a stop signal has come); must be cheap and safe to call from any thread.
  std::function<bool()> interrupted = [] { return false; };

  /// Where the replica lives, and with it all blocks that the exchange keeps beside it.
  Device& device() const { return *replica.device; }
};

/// Thrown out of a wait because `ExchangeContext::interrupted` became true: the replica is as `start` left it.
struct WaitInterrupted : std::exception {
  const char* what() const noexcept override { return "interrupted while waiting for a neighbour"; }
};

/// `lockstep`: an iteration waits for every in-neighbour's packet of the same iteration: deterministic, repeatable.
/// `asynchronous`: never waits; whatever has arrived is used.
enum class Schedule { lockstep, asynchronous };
Schedule read_schedule(Config& exchange);
inline const char* schedule_name(Schedule schedule) {
  return schedule == Schedule::lockstep ? "lockstep" : "asynchronous";
}

/// What holds of an exchange as it is configured. Tests, benchmarks and reports ask for these, never for its name.
struct ExchangeLaws {
  enum class Mixes {
    models,    ///< each rank steps by its own gradient and is pulled towards other ranks' models
    gradients  ///< ranks step by a gradient that they have made together
  };
  Mixes mixes = Mixes::models;
  /// Ranks talk along the edges of the configured graph. Else everybody may talk to everybody: the run's graph is the
  /// complete one, and a section `topology:` is an error.
  bool along_graph = false;
  /// The graph may change from iteration to iteration. What mixes with copies that it holds cannot follow it: most
  /// copies would be as old as the period.
  bool follows_turns = false;
  /// Edges of the graph may count one way only: shares of what a rank has travel, and add up to all of it.
  bool along_arcs = false;
  /// After every iteration all replicas are the same, to the last bit.
  bool replicas_agree = false;
  /// Models: mixing leaves the mean over ranks where it is. Gradients: what is applied and what stays owed
  /// (`add_residual`) are what was put in. To rounding; exactly where sums are exact.
  bool keeps_mass = false;
  /// `finish` gives a rank the gradient of its own part of the block only (runtime/replica/layout.hpp, part_of).
  bool sharded = false;
  /// It needs `ExchangeContext::steps`: a participant refuses `finish` while the rate of a segment is not known.
  bool measures_steps = false;
};

/// A configured exchange before there is a replica: read and checked on every rank before any communication. Nothing of
/// it changes afterwards: many exchanges can be built of one plan, on any thread.
class ExchangePlan {
 public:
  virtual ~ExchangePlan() = default;
  /// The largest packet that one iteration can send to one neighbour in a job of so many ranks, in bytes: sizes the
  /// rings.
  virtual std::size_t packet_bound(const Layout& layout, int ranks) const = 0;
  virtual std::unique_ptr<Exchange> build(const ExchangeContext& context) const = 0;
  virtual Schedule schedule() const = 0;
  /// Whether `start` may move x: the gradient is of where it is then.
  virtual bool moves_at_start() const { return schedule() == Schedule::asynchronous; }
  /// H: a round of so many iterations ends with an exchange; 1: every iteration does.
  virtual Iteration local_steps() const { return 1; }
  /// How many packets of an edge may be under way, posted and not yet popped; nothing: as many as fit into the ring.
  virtual std::optional<std::size_t> in_flight() const { return std::nullopt; }
  /// Whether `build` can be given a replica that lives there; else its passes are the processor's only.
  virtual bool runs_on(const Device& device) const { return device.is_processor(); }
  /// Bytes that all ranks together can send in one iteration, at worst.
  virtual std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const {
    return static_cast<std::size_t>(topology.edges_in_use()) * packet_bound(layout, topology.ranks());
  }
  /// What an iteration costs by the formulas of cost/, with this plan's settings; nothing where there is none.
  virtual std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                           const CostAssumptions& assumptions) const {
    static_cast<void>(layout), static_cast<void>(topology), static_cast<void>(assumptions);
    return std::nullopt;
  }
  virtual ExchangeLaws laws() const = 0;
  /// Whether ranks go on when one of them has died (Exchange::lose), and with another process in its place
  /// (Exchange::begin_edge).
  virtual bool survives_deaths() const { return false; }
  /// Bytes that an exchange keeps on one of `ranks` ranks, one with so many neighbours, beside x, g and the window:
  /// copies, residuals, packets that are built. What is small beside a block of n floats is left out.
  virtual std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const = 0;
  /// What a user should know before a run on this graph: sentences.
  virtual std::vector<std::string> warnings(const Topology& topology) const {
    static_cast<void>(topology);
    return {};
  }
  /// Throws ConfigError if this exchange cannot run on so many ranks.
  virtual void require_ranks(int ranks) const { static_cast<void>(ranks); }
};

/// The plan's exchange on the replica where it lives or, where it does not run there, on a mirror in the processor's
/// memory (runtime/exchange/mirrored.cpp).
std::unique_ptr<Exchange> build_exchange(const ExchangePlan& plan, const ExchangeContext& context);

/// `make(exchange, root)` reads the exchange's own section and opens, in `root`, the sections that it uses (`trigger`,
/// `sparsify`): a section that the chosen exchange does not use is an error of the configuration.
using ExchangeEntry = Entry<ExchangePlan, Config&>;
std::span<const ExchangeEntry> exchanges();
/// The entry that the section `exchange:` asks for.
const ExchangeEntry& chosen_exchange(Config& exchange);

/// Reads `exchange:`, `trigger:` and `sparsify:` of the whole configuration.
std::unique_ptr<ExchangePlan> plan_exchange(Config& root);
/// Reads `topology:` where `exchange` uses a graph; else the complete one, without reading anything.
std::unique_ptr<TopologyPlan> plan_topology(Config& root, const ExchangePlan& exchange);

}  // namespace hearsay
