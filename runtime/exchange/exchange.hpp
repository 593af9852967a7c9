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
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/exchange/capabilities.hpp"
#include "runtime/exchange/cost/cost.hpp"
#include "runtime/exchange/membership/edges.hpp"
#include "runtime/exchange/stability.hpp"
#include "runtime/exchange/step_response.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/parameters.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"
#include "runtime/transport/peers.hpp"
#include "topology/topology.hpp"

namespace hearsay {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void start(Iteration k) = 0;
  virtual void gradient_ready(SegmentId segment) { static_cast<void>(segment); }
  virtual void finish(Iteration k) = 0;
  virtual void stepped(Iteration k) { static_cast<void>(k); }
  /// All that it knows beside x, between two iterations (base/state/archive.hpp): asked for after `stepped`, loaded
  /// into a new one before its first `start`, which has the next k. Asynchronous ranks have settled before
  /// (Participant::settle). What a lockstep rank has sent, and nobody has used, it sends again when it loads.
  virtual void state(Archive& archive) { static_cast<void>(archive); }
  /// What else it can do, the same at any time.
  virtual Capabilities capabilities() { return {}; }
};

/// What reports say of an exchange; empty where it measures nothing.
const Measures& measures_of(Exchange& exchange);
/// Adds what this rank still owes to the sum over ranks to `block` of n floats; nothing where exchanges owe nothing.
void add_residual(Exchange& exchange, std::span<float> block);

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
  Edges& edges;
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
  /// The same with another replica: for an exchange that works on one of its own.
  ExchangeContext with(Parameters& other) const {
    const auto& [graph, row, ends, own, box, driver, counts, messages, epochs, responses, stops] = *this;
    static_cast<void>(own);
    return {graph, row, ends, other, box, driver, counts, messages, epochs, responses, stops};
  }
};

/// `lockstep`: an iteration waits for every in-neighbour's packet of the same iteration: deterministic, repeatable.
/// `asynchronous`: never waits; whatever has arrived is used.
enum class Schedule { lockstep, asynchronous };
Schedule read_schedule(Config& exchange);
/// Reads `exchange.in_flight`: how many packets of an edge asynchronous ranks may have under way; `usual` if it is not
/// given. Lockstep has no use for it.
std::size_t read_in_flight(Config& exchange, Schedule schedule, std::size_t usual = 1);
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
  /// The graph may change from iteration to iteration, phase by phase. What mixes with copies that it holds cannot
  /// follow it: most copies would be as old as the period.
  bool follows_phases = false;
  /// Edges of the graph may count one way only: shares of what a rank has travel, and add up to all of it.
  bool along_arcs = false;
  /// After every iteration all replicas are the same, to the last bit.
  bool replicas_agree = false;
  /// Models: mixing leaves the mean over ranks where it is. Gradients: what is applied and what stays owed
  /// (`Residual`) are what was put in. To rounding; exactly where sums are exact.
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
  /// Whether `build` can be given a replica that lives on a GPU; else its passes are the processor's only.
  virtual bool runs_on_gpus() const { return false; }
  bool runs_on(const Device& device) const { return device.is_processor() || runs_on_gpus(); }
  /// What a user of GPUs should know of it: what the processor does all the same, and what that costs. Sentences.
  virtual std::vector<std::string> warnings_on_gpus() const;
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
  /// Which steps of this optimizer are stable on this graph; nothing where that is not known.
  virtual std::optional<Stability> stability(const Topology& topology, const StepResponse& step) const {
    static_cast<void>(topology), static_cast<void>(step);
    return std::nullopt;
  }
  virtual ExchangeLaws laws() const = 0;
  /// Whether ranks go on when one of them has died, and with another process in its place (EdgeListener).
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
