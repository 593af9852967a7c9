// Gradient dropping: every rank is a client, with a replica, and the server of one shard, 1/P of the parameters.
//   client i:  r ← r + g;  v ← T(r);  r ← r − v;  pushes v_s to every server s
//   server s:  g_s ← (1/P) Σ_i v_i,s;  the optimizer moves its master copy of the shard by g_s
//              d_i ← T(master − copy_i);  copy_i ← copy_i + d_i;  client i pulls d_i:  x_s ← x_s + d_i
//   T: the largest values by a sampled threshold (the default selector), of the block or of each segment: the paper's
//   global and local thresholds (`sparsify.selector.scope`)
// aji2017sparse, Algorithm 1 and sections 3 and 4.
// Deviates from the paper in: the mean of the pushes, where the paper adds them; `schedule: lockstep`, the default, is
// the synchronous variant, with one copy for all clients, `asynchronous` the paper's, with a copy for each; what a pull
// drops is master − copy itself, so nothing has to be remembered twice; where `in_flight` packets are under way the
// push stays in the residual and the pull stays owed; a rank's push to itself does not travel and is not rounded;
// one rank drops nothing (`topk` on one rank does).
// The optimizer sees gradients of the own shard only, and what it does to x elsewhere (weight decay, momentum) is
// undone. Cost per rank and iteration, N values, k pushed, k' pulled of all, 8 bytes an entry with the plain codec:
// lockstep: P − 1 messages and k (P − 1)/P entries of pushes; ⌈log2 P⌉ messages and k' (P − 1)/P entries of pulls;
// asynchronous: P − 1 packets at most, with k (P − 1)/P and k' (P − 1)/P entries; memory: residual, copy and 2/P
// (lockstep) or (P + 1)/P (asynchronous) more blocks; time: a selection among N values, and one among N/P for each
// different copy.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "runtime/exchange/dropping/gradient_dropping.hpp"

namespace hearsay {
namespace {

// One that is used and one that travels. More of them carry older gradients: with eight, four ranks of a busy machine
// ended at 75 instead of 98 %.
constexpr std::size_t packets_under_way = 2;

class GradientDroppingPlan final : public ExchangePlan {
 public:
  GradientDroppingPlan(Config& exchange, Config& root)
      : schedule_(read_schedule(exchange)),
        settings_{.push = {exchange, root, {.selector = "sampled", .per_segment = false}},
                  .in_flight = read_in_flight(exchange, schedule_, packets_under_way)} {
    settings_.pull_density =
        exchange.real("pull_density", 0.0, Range::between(0.0, 1.0),
                      "fraction of a shard's changes that a client pulls; 0: that of the push; 1: all of them");
  }

  std::size_t packet_bound(const Layout& layout, int ranks) const override {
    require_positions(layout.size(), "the model");
    return schedule_ == Schedule::asynchronous ? dropping_packet_bound(settings_, layout, ranks) : 0;
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    if (schedule_ == Schedule::asynchronous) return ExchangePlan::worst_case_bytes(layout, topology);
    const auto p = static_cast<std::size_t>(topology.ranks());
    if (p == 1) return 0;
    const Sparsifier& sparsifier = *settings_.push.sparsifier;
    const double density = sparsifier.largest_density();
    const std::size_t longest = part_of(layout.size(), topology.ranks(), 0).length;
    const SparseWire wire(*sparsifier.codec, longest, {});
    // Messages grow ever more slowly with their entries, so they are longest together when they are equally long, apart
    // from a last byte that is not full.
    const std::size_t pushed =
        sparsifier.selector->most(BlockSelection(sparsifier, layout).count(density), layout.size());
    const std::size_t push = wire.bound(std::min((pushed + p - 2) / (p - 1), longest)) + 1;
    const double pull_density = settings_.pull(density);
    const std::size_t pulled =
        settings_.pull_density == 1.0 ? longest : sparsifier.selector->most(kept_count(pull_density, longest), longest);
    return p * (p - 1) * (push + wire.bound(pulled) + gather_header_bytes);
  }
  /// The paper's selectors keep about k, not exactly k.
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    SparseShape shape = settings_.push.shape(layout, topology.ranks());
    const Sparsifier& sparsifier = *settings_.push.sparsifier;
    const std::size_t shard = part_of(layout.size(), shape.ranks, 0).length;
    const SparseWire wire(*sparsifier.codec, shard, {});
    shape.message_bytes = wire.bound(shape.k / static_cast<std::size_t>(shape.ranks));
    const double density = settings_.pull(sparsifier.selector->density());
    const std::size_t pulled = density == 1.0 ? shard : kept_count(density, shard);
    ExchangeCost cost = sharded_cost(shape, wire.bound(pulled) + gather_header_bytes, assumptions);
    cost.waits = schedule_ == Schedule::lockstep;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    const auto ranks = static_cast<std::size_t>(context.peers.size());
    if (ranks > context.replica.layout.size())
      throw ConfigError("exchange: gradient_dropping cannot make " + std::to_string(ranks) + " servers of " +
                        std::to_string(context.replica.layout.size()) + " parameters; use fewer ranks");
    return schedule_ == Schedule::asynchronous ? make_asynchronous_dropping(context, settings_)
                                               : make_lockstep_dropping(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const std::size_t block = layout.size() * sizeof(float);
    const std::size_t shard = part_of(layout.size(), ranks, 0).length * sizeof(float);
    const std::size_t residual = feedback_bytes(settings_.push.feedback, layout.size());
    if (schedule_ == Schedule::lockstep) return residual + block + 2 * shard;  // copy; master and change
    return residual + (static_cast<std::size_t>(ranks) + 1) * shard + block;   // clients' copies and arrivals; x kept
  }
  Schedule schedule() const override { return schedule_; }
  std::optional<std::size_t> in_flight() const override {
    return schedule_ == Schedule::asynchronous ? std::optional(settings_.in_flight) : std::nullopt;
  }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients,
            .replicas_agree = schedule_ == Schedule::lockstep,
            .keeps_mass = true,
            .sharded = true};
  }

 private:
  Schedule schedule_;
  DroppingSettings settings_;
};

}  // namespace

ExchangeEntry gradient_dropping_exchange() {
  return {.name = "gradient_dropping",
          .summary = "sharded parameter servers; clients push their largest gradients and pull the largest changes",
          .equation =
              "r <- r + g;  v <- T(r);  r <- r - v;  master_s moves by 1/P sum_i v_i,s;  "
              "x_s <- x_s + T(master_s - x_s)",
          .cost = "k (P - 1)/P entries pushed and as many pulled a rank, 8 bytes each; P - 1 and ceil(log2 P) messages",
          .citation = "aji2017sparse, Algorithm 1 and sections 3 and 4",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<GradientDroppingPlan>(exchange, root);
          }};
}

}  // namespace hearsay
