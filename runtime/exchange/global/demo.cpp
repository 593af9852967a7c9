// DeMo, decoupled momentum: every rank's momentum stays its own but for its largest cosine coefficients, which all
// ranks take out, average and step along.
//   δ_i ← β δ_i + g_i;  c_i ← DCT(δ_i), in blocks;  v_i ← top_k(c_i) of every block;  δ_i ← δ_i − IDCT(v_i)
//   c̄ ← at every coefficient the mean over the ranks that have sent it;  g ← sign(IDCT(c̄))
// peng2024demo, Algorithm 1; the mean over senders is its code's. Selection, codec and rounding are `sparsify`'s: k is
// a fraction of a block, 32 of 4,096 in the paper's experiments, density 0.0078. What is rounded off stays in δ_i.
// The optimizer should be plain SGD: a step of ± η everywhere. With P = 1 and density 1 it is signSGD.
// Deviates from the paper in: δ_i collects gradients, there gradients times the learning rate of their iteration, which
// differs where that changes; tensors of more than two dimensions are matrices of the first by the rest; DisTrO's
// values of one bit are `quantiser: {name: one_bit}`. With the quantiser `dead_zone` those coefficients travel that are
// news (sparsify/quantisers/sum_step.hpp), of all blocks alike.
// Cost per rank and iteration: topk's, ⌈log2 P⌉ messages and (P − 1) k entries; memory: two blocks (δ_i, c_i) beside
// what is gathered; time: 3 transforms of 2 (a + b) operations a value, a and b the sides of a block.
#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "runtime/collectives/gathered_sum.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/block_dct.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/replica/block_selection.hpp"
#include "runtime/replica/finite.hpp"
#include "sparsify/quantisers/sum_step.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

struct DemoSettings {
  double decay = 0.999;  // β
  std::size_t side = 64;
  bool sign = true;
  std::shared_ptr<const Sparsifier> sparsifier;  // to ask; every exchange selects with a copy
};

class DeMo final : public Exchange, public Residual {
 public:
  DeMo(const ExchangeContext& context, const DemoSettings& settings)
      : context_(context),
        settings_(settings),
        sparsifier_(settings.sparsifier->fresh()),
        dct_(context.replica.layout, settings.side),
        selection_(sparsifier_, dct_.blocks()),
        momentum_(context.replica.layout.size()),
        coefficients_(context.replica.layout.size()),
        step_(sparsifier_.news ? std::optional<SumStep>(*sparsifier_.news) : std::nullopt),
        wire_(*sparsifier_.codec, context.replica.layout.size(), row_ends(dct_.blocks()), &context.ledger,
              step_ ? &*step_ : nullptr) {}

  void start(Iteration) override {}
  void finish(Iteration k) override {
    const auto g = context_.replica.gradients.span(), delta = momentum_.span(), c = coefficients_.span();
    require_finite_gradients(context_.replica.layout, 0, g);
    const SparseVector own = select(k);
    SparseSum found;
    run_collective(context_, [&] { found = gathered_mean_of_senders(Group(context_.peers), own, wire_); });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    put_back(found.included, g, delta);
    std::ranges::fill(c, 0.0F);
    add_to(c, found.total);
    dct_.invert(c, g);
    require_finite_sum(context_.replica.layout, 0, g);  // a sign would hide it
    if (!settings_.sign) return;
    for (float& value : g) value = value > 0.0F ? 1.0F : value < 0.0F ? -1.0F : 0.0F;
  }
  Capabilities capabilities() override { return {.residual = this}; }
  void add_residual(std::span<float> block) const override {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] += momentum_.span()[i];
  }
  void take_residual(std::span<const float> sum) override {
    const Part own = part_of(sum.size(), context_.peers.size(), context_.peers.rank());
    for (std::size_t i = 0; i < own.length; ++i) own.of(momentum_.span())[i] += own.of(sum)[i];
  }
  void state(Archive& archive) override {
    sparsifier_.selector->state(archive);
    if (step_) step_->state(archive);
    archive.values("momentum", momentum_.span());
  }

 private:
  SparseVector select(Iteration k) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    const auto g = context_.replica.gradients.span(), delta = momentum_.span(), c = coefficients_.span();
    const auto beta = static_cast<float>(settings_.decay);
    for (std::size_t i = 0; i < g.size(); ++i) delta[i] = beta * delta[i] + g[i];
    dct_.transform(delta, c);
    std::vector<std::uint32_t> positions;
    if (step_) {
      step_->adds(g);
      select_news(c, positions);
    } else {
      selection_.select(c, sparsifier_.density(epoch_of(context_, k)), positions);
    }
    SparseVector own;
    own.indices.reserve(positions.size());
    own.values.reserve(positions.size());
    for (const std::uint32_t i : positions)
      if (c[i] != 0.0F) own.push_back(i, c[i]);
    count_events(context_, own.indices);
    return own;
  }
  void select_news(std::span<const float> c, std::vector<std::uint32_t>& positions) {
    try {
      step_->select(c, positions);
    } catch (const DivergenceError& error) {
      name_segment(dct_.blocks(), 0, c, "cosine coefficient of the momentum", error);
    }
  }
  /// δ ← δ − IDCT(what the others have of it); `scratch` is of as many values.
  void put_back(const SparseVector& sent, std::span<float> scratch, std::span<float> delta) {
    const auto c = coefficients_.span();
    std::ranges::fill(c, 0.0F);
    add_to(c, sent);
    dct_.invert(c, scratch);
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= scratch[i];
  }

  ExchangeContext context_;
  DemoSettings settings_;
  Sparsifier sparsifier_;
  BlockDct dct_;
  BlockSelection selection_;
  FloatBlock momentum_;          // δ_i
  FloatBlock coefficients_;      // c_i, and then those of what was sent and of the mean
  std::optional<SumStep> step_;  // where coefficients that are news travel
  SparseWire wire_;
};

DemoSettings read_demo_settings(Config& exchange, Config& root) {
  DemoSettings settings;
  settings.decay = exchange.real("decay", 0.999, Range::between(0.0, 1.0), "of the momentum, an iteration (β)");
  settings.side = static_cast<std::size_t>(
      exchange.integer("block_side", 64, Range::between(1, 4096), "of the blocks that are transformed, at most"));
  settings.sign = exchange.flag("sign", true, "the optimizer gets the sign of the mean, ± 1, and not the mean");
  Config section = root.section("sparsify");
  settings.sparsifier = std::make_shared<const Sparsifier>(
      read_sparsifier(section, {.selector = "topk", .per_segment = true, .scope_is_fixed = true, .news = true}));
  return settings;
}

class DeMoPlan final : public CollectivePlan {
 public:
  DeMoPlan(Config& exchange, Config& root) : settings_(read_demo_settings(exchange, root)) {
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks step together",
                    "; the mean is of the same iteration of all ranks. Leave it at lockstep");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const SparseWire wire(*settings_.sparsifier->codec, layout.size(), {});
    const auto p = static_cast<std::size_t>(topology.ranks());
    return p * (p - 1) * (wire.bound(most_entries(*settings_.sparsifier, blocks(layout))) + gather_header_bytes);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const Sparsifier& sparsifier = *settings_.sparsifier;
    const std::size_t k = usual_entries(sparsifier, blocks(layout));
    ExchangeCost cost = gathered_cost({.ranks = topology.ranks(),
                                       .values = layout.size(),
                                       .k = k,
                                       .message_bytes = usual_bytes(sparsifier, blocks(layout)) + gather_header_bytes,
                                       .selector_reads = sparsifier.selector->reads(k)},
                                      assumptions);
    constexpr double words = 14.0;  // δ and g; three transforms; δ − what was sent; the sign
    cost.local.moved_bytes += words * sizeof(float) * static_cast<double>(layout.size());
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<DeMo>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const Sparsifier& sparsifier = *settings_.sparsifier;
    const Layout of_blocks = blocks(layout);
    // Segment by segment candidates are few.
    return 2 * layout.size() * sizeof(float) + gathered_mean_lists(ranks) * list_bytes(sparsifier, of_blocks) +
           (sparsifier.news ? candidate_bytes(sparsifier, of_blocks) : 0);
  }
  /// Where all of it is applied and not its sign, and nothing decays, a mean over senders is not the mean over ranks.
  ExchangeLaws laws() const override { return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true}; }

 private:
  void require_fitting(const Layout& layout) const override { require_positions(layout.size(), "the model"); }
  Layout blocks(const Layout& layout) const { return BlockDct(layout, settings_.side).blocks(); }

  DemoSettings settings_;
};

}  // namespace

ExchangeEntry demo_exchange() {
  return {
      .name = "demo",
      .summary = "decoupled momentum: of every rank's momentum the largest cosine coefficients, and a step of signs",
      .equation =
          "d_i <- beta d_i + g_i;  v_i <- top_k(DCT(d_i)) of every block;  d_i <- d_i - IDCT(v_i);  g <- "
          "sign(IDCT(mean of v over those who sent))",
      .cost = "ceil(log2 P) messages, (P - 1) k entries a rank; two blocks; three cosine transforms",
      .citation = "peng2024demo, Algorithm 1; ahmed1974discrete",
      .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
        return std::make_unique<DeMoPlan>(exchange, root);
      }};
}

}  // namespace hearsay
