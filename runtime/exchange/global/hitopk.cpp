// HiTopKComm: dense sums inside a node, where bandwidth is cheap, and sparse ones between nodes.
//   M nodes of n ranks; the block is cut into n shards, and local rank l of every node works on shard l:
//   reduce-scatter inside the node:  a ← Σ_{i in node} g_i                 on the shard
//   r ← r + a;  v ← select_{k/n}(r);  r ← r − v
//   all-gather between nodes, among the ranks with equal l:  s ← Σ_nodes v
//   all-gather inside the node:  g ← (1/P) (s of all shards)
// shi2021towards, section 4: HiTopKComm with MSTopK (the default selector here).
// Deviates from the paper in: any number of ranks a node, and shards that differ in length by one; the last step passes
// the M encoded messages on where they are shorter than the dense shard, else the dense shard, as the article leaves
// open (one formula decides for all ranks); messages hold values and positions together; sums in a fixed order; local
// clipping comes before the sum inside the node, momentum correction after it, since the residual is the shard's.
// Cost per rank and iteration, k of N values, plain codec: inside the node 2(n − 1) messages (fewer where messages are
// passed on) and (n − 1)/n · 4N bytes and as many again, or (n − 1) · 8 M k/n; between nodes ⌈log2 M⌉ messages and
// (M − 1) k/n entries of 8 bytes, 32 bytes of headers each; memory: N/n residuals; time: a selection among N/n values.
#include <algorithm>

#include "runtime/collectives/gather.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/global/parts/nodes.hpp"
#include "runtime/exchange/global/parts/sparse_sgd.hpp"

namespace hearsay {
namespace {

/// A shard of the block and how sparse parts of it travel.
struct Shard {
  Part part;
  SparseWire wire;
};

std::vector<Shard> make_shards(const Layout& layout, const Codec& codec, int count, Ledger& ledger) {
  std::vector<Shard> shards;
  for (int l = 0; l < count; ++l) {
    const Part part = part_of(layout.size(), count, l);
    shards.push_back({.part = part, .wire = {codec, part.length, row_ends(layout, part), &ledger}});
  }
  return shards;
}

/// The last step, inside a node: what a rank brings to it is all nodes' messages for its shard, or the dense shard.
struct LastStep {
  std::size_t message;    ///< bytes of the longest message for a shard
  std::size_t forwarded;  ///< bytes of a rank's messages together
  bool forwards;          ///< they are shorter than any dense shard
};

LastStep plan_last_step(const Sparsifier& sparsifier, double density, std::size_t values, std::size_t shards,
                        std::size_t nodes) {
  const std::size_t longest = part_of(values, static_cast<int>(shards), 0).length;
  const SparseWire wire(*sparsifier.codec, longest, {});
  const std::size_t message = wire.bound(sparsifier.selector->most(kept_count(density, longest), longest));
  const std::size_t forwarded = nodes * (message + packed_header_bytes) + gather_header_bytes;
  return {.message = message, .forwarded = forwarded, .forwards = forwarded < values / shards * sizeof(float)};
}

class HiTopK final : public Exchange, public Residual {
 public:
  HiTopK(const ExchangeContext& context, const SparseSgdSettings& settings, NodeGroups groups)
      : context_(context),
        here_(context.device(), context.replica.gradients.span()),
        groups_(std::move(groups)),
        sparsifier_(settings.sparsifier->fresh()),
        shards_(make_shards(context.replica.layout, *sparsifier_.codec, static_cast<int>(groups_.local.size()),
                            context.ledger)),
        shard_(shards_[static_cast<std::size_t>(groups_.local_index)]),
        clipping_(settings.feedback, 0, context.peers.size()),
        feedback_(settings.feedback, shard_.part.length, context.peers.size()) {}

  void start(Iteration) override {}

  void finish(Iteration k) override {
    const std::span<float> g = here_.fetch(0, context_.replica.layout.size());
    const double density = sparsifier_.density(epoch_of(context_, k));
    check_and_clip(g);
    run_collective(context_, [&] { reduce_scatter(Group(context_.peers, groups_.local), g); });
    const SparseVector own = select(shard_.part.of(g), density);
    run_collective(context_, [&] { gather(own, density, g); });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    feedback_.give_back(sent_.rest);
    feedback_.mask(sent_.received.indices);
    divide_by_ranks(context_, 0, g);
    here_.put();
  }
  Capabilities capabilities() override { return {.residual = this}; }
  void add_residual(std::span<float> block) const override { feedback_.add_residual(shard_.part.of(block)); }
  // The ranks that work on the same shard share it.
  void take_residual(std::span<const float> sum) override {
    const auto shard = shard_.part.of(sum);
    const auto position = std::ranges::find(groups_.across, context_.peers.rank()) - groups_.across.begin();
    const Part own = part_of(shard.size(), static_cast<int>(groups_.across.size()), static_cast<int>(position));
    feedback_.take_over(own.of(shard), own.begin);
  }
  void state(Archive& archive) override {
    sparsifier_.selector->state(archive);
    feedback_.state(archive);
  }

 private:
  void check_and_clip(std::span<float> g) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    require_finite_gradients(context_.replica.layout, 0, g);
    const float factor = clipping_.clipping(g);
    if (factor == 1.0F) return;
    for (float& value : g) value *= factor;
  }

  SparseVector select(std::span<const float> sums, double density) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    feedback_.accumulate(sums);
    try {
      sparsifier_.selector->select(feedback_.residual(), kept_count(density, sums.size()), positions_);
    } catch (const DivergenceError& error) {
      name_segment(context_.replica.layout, shard_.part.begin, feedback_.residual(), "gradient", error);
    }
    SparseVector own = feedback_.take(positions_);
    positions_ = own.indices;
    for (std::uint32_t& i : positions_) i += static_cast<std::uint32_t>(shard_.part.begin);
    count_events(context_, positions_);
    return own;
  }

  // The same sums on every rank, whichever way they came: all add the same M messages in the order of the nodes.
  void gather(const SparseVector& own, double density, std::span<float> g) {
    const Group local(context_.peers, groups_.local);
    sent_ = shard_.wire.prepare(own);
    std::vector<OwnedMessage> messages = all_gather(Group(context_.peers, groups_.across), std::move(sent_.message));
    std::ranges::fill(g, 0.0F);
    if (!plan_last_step(sparsifier_, density, g.size(), shards_.size(), groups_.across.size()).forwards) {
      add_messages(messages, shard_, g);
      all_gather_parts(local, g);
      return;
    }
    const auto packs = all_gather(local, pack(messages));
    for (std::size_t l = 0; l < packs.size(); ++l)
      add_messages(unpack(packs[l].bytes, messages.size(), groups_.local[l]), shards_[l], g);
  }
  static void add_messages(const std::vector<OwnedMessage>& messages, const Shard& shard, std::span<float> g) {
    std::vector<SparseVector> contributions;
    for (const OwnedMessage& message : messages) contributions.push_back(shard.wire.decode(message.bytes));
    add_to(shard.part.of(g), sum(std::span<const SparseVector>(contributions)));
  }

  ExchangeContext context_;
  View here_;  // of g
  NodeGroups groups_;
  Sparsifier sparsifier_;
  std::vector<Shard> shards_;  // by local index
  const Shard& shard_;         // this rank's
  ErrorFeedback clipping_;     // knows the norm of whole gradients, keeps nothing
  ErrorFeedback feedback_;     // of the shard
  SparseWire::Sent sent_;
  std::vector<std::uint32_t> positions_;
};

class HiTopKPlan final : public CollectivePlan {
 public:
  HiTopKPlan(Config& exchange, Config& root)
      : settings_(exchange, root, {.selector = "mstopk", .per_segment = false, .scope_is_fixed = true}) {
    node_size_ = static_cast<int>(
        exchange.integer("node_size", 0, Range::between(0, 1e6), "ranks a node, consecutive ones; 0: the machines'"));
    root.section("sparsify")
        .section("selector")
        .require(settings_.sparsifier->dense_below == 0, "dense_below",
                 "hitopk selects in shards, which are not made of whole segments; use 0");
  }
  // Where the machines decide, the most that any equal nodes would send.
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    if (node_size_ > 0) return bytes_with(node_size_, layout, topology.ranks());
    std::size_t most = 0;
    for (int n = 1; n <= topology.ranks(); ++n)
      if (topology.ranks() % n == 0) most = std::max(most, bytes_with(n, layout, topology.ranks()));
    return most;
  }
  void require_ranks(int ranks) const override {
    if (node_size_ > 0) require_equal_nodes(node_size_, ranks);
  }
  /// None where the hosts do not have equally many ranks each: that run is refused.
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const int ranks = topology.ranks(), nodes = node_size_ > 0 ? ranks / node_size_ : assumptions.hosts;
    if (nodes == 0 || ranks % nodes != 0) return std::nullopt;
    const auto n = static_cast<std::size_t>(ranks / nodes);
    const Sparsifier& sparsifier = *settings_.sparsifier;
    const double density = sparsifier.selector->density();
    const LastStep last = plan_last_step(sparsifier, density, layout.size(), n, static_cast<std::size_t>(nodes));
    const std::size_t k = kept_count(density, part_of(layout.size(), ranks / nodes, 0).length);
    return hierarchical_cost({.ranks = ranks,
                              .values = layout.size(),
                              .k = k,
                              .message_bytes = last.message + gather_header_bytes,
                              .selector_reads = sparsifier.selector->reads(k)},
                             ranks / nodes, last.forwards ? last.forwarded : 0, assumptions);
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<HiTopK>(context, settings_, node_groups(context.peers, node_size_));
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const std::size_t shard = part_of(layout.size(), node_size_ > 0 ? node_size_ : ranks, 0).length;
    return feedback_bytes(settings_.feedback, shard) + shard * sizeof(float);  // and what comes around the ring
  }
  bool runs_on_gpus() const override { return true; }
  std::vector<std::string> warnings_on_gpus() const override {
    return {
        "train.device: hitopk selects and adds on the processor: 4 bytes a value leave the GPU in every iteration, and "
        "as many come back"};
  }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true, .keeps_mass = true};
  }

 private:
  void require_fitting(const Layout& layout) const override { require_positions(layout.size(), "the model"); }
  std::size_t bytes_with(int node_size, const Layout& layout, int ranks) const {
    require_equal_nodes(node_size, ranks);
    const Sparsifier& sparsifier = *settings_.sparsifier;
    const auto n = static_cast<std::size_t>(node_size), m = static_cast<std::size_t>(ranks / node_size);
    const std::size_t ring = (n - 1) * layout.size() * sizeof(float);  // a node's, dense
    const LastStep last = plan_last_step(sparsifier, sparsifier.largest_density(), layout.size(), n, m);
    const std::size_t between = n * m * (m - 1) * (last.message + gather_header_bytes);
    return m * ring + between + m * (last.forwards ? n * (n - 1) * last.forwarded : ring);
  }

  SparseSgdSettings settings_;
  int node_size_ = 0;
};

}  // namespace

ExchangeEntry hitopk_exchange() {
  return {.name = "hitopk",
          .summary = "HiTopKComm: dense sums inside a node, every rank's shard of them sparse between nodes",
          .equation =
              "a <- sum_node g on the shard;  r <- r + a;  v <- mstopk_{k/n}(r);  r <- r - v;  "
              "g <- 1/P sum_nodes v, of all shards",
          .cost = "inside nodes (n - 1)/n 4 N bytes twice, between nodes (M - 1) k/n entries of 8 bytes a rank",
          .citation = "shi2021towards, section 4",
          .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
            return std::make_unique<HiTopKPlan>(exchange, root);
          }};
}

}  // namespace hearsay
