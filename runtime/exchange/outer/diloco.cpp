// DiLoCo: H local steps, the mean of what all ranks have made of them, a step with Nesterov's momentum along it.
//   local:   x_i moves by the loop's optimizer, H times from φ
//   round:   D ← (1/P) Σ_i (φ − x_i);  m ← μ m + D;  φ ← φ − η (D + μ m);  x_i ← φ
// douillard2023diloco, Algorithm 1; with one rank it is Lookahead (zhang2019lookahead), with H = 1, η = 1, μ = 0 and
// plain SGD the dense S-SGD of allreduce.
// Streaming (douillard2025streaming): F fragments, whose rounds end at different steps; the sum travels during
// `delay_steps` = τ local steps that go on meanwhile, and the result is blended with what they have made:
//   after τ:  φ as above, by the D of τ steps ago;  x_i ← (1 − α) φ + α x_i
// Deviates from the papers in: fragments are runs of tensors of nearly equal size, in the model's order; outer
// differences travel as 32-bit floats, in the ring of allreduce. With the quantiser `dead_zone` only what is news of
// them travels, and the rest stays in a residual (coded_sum.hpp). A round that the run's last iteration cuts short does
// not end: the mean model has its local steps without an outer step.
// Cost per rank and round: 2 (P − 1) F messages, 2 (P − 1)/P · 4n bytes, 1/H of that an iteration; the most at once is
// 1/F of it; memory: 3 blocks (φ, D, m), 2 without momentum. Coded: topk's, and a block more.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/gathered_sum.hpp"
#include "runtime/collectives/ring.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/exchange/outer/coded_sum.hpp"
#include "runtime/exchange/outer/fragments.hpp"
#include "runtime/exchange/outer/outer_step.hpp"

namespace hearsay {
namespace {

struct DilocoSettings {
  OuterOptions outer{};
  std::size_t fragments = 1;  // F
  Iteration delay_steps = 0;  // τ
  double blend = 0.0;         // α
  std::shared_ptr<const Sparsifier> sparsifier{};
};

class DiLoCo final : public Exchange {
 public:
  DiLoCo(const ExchangeContext& context, const DilocoSettings& settings)
      : context_(context),
        settings_(settings),
        fragments_(fragments_of(context.replica.layout, settings.fragments, settings.outer.local_steps)),
        optimizer_(settings.outer, OuterOptimizer::Form::nesterov, context.replica.layout.size()),
        phi_(context.replica.layout.size()),
        difference_(context.replica.layout.size()),
        queue_(context_) {
    if (settings_.sparsifier->news)
      coded_.emplace(context_, *settings_.sparsifier,
                     settings.delay_steps > 0 ? CodedSum::Meanwhile::local_steps : CodedSum::Meanwhile::nothing);
    std::ranges::copy(context_.replica.values.span(), phi_.span().begin());
  }

  void start(Iteration) override {}
  void finish(Iteration) override {}
  // One fragment is under way at most: its round ends before another one's, by more than τ steps.
  void stepped(Iteration k) override {
    for (std::size_t f = 0; f < fragments_.size(); ++f) {
      if ((k + 1 - fragments_[f].ends) % settings_.outer.local_steps == 0 && k + 1 >= fragments_[f].ends) ask(f, k);
    }
    if (asked_ >= 0 && k == answer_due_) end_round(fragments_[static_cast<std::size_t>(asked_)]);
  }
  // What is under way has been sent by all ranks that are at this iteration: it comes without anybody's next step.
  void state(Archive& archive) override {
    queue_.wait();
    if (coded_) coded_->settle(), coded_->state(archive);
    archive.values("outer model", phi_.span());
    optimizer_.state(archive);
    archive.value("fragment under way", asked_);
    if (asked_ < -1 || asked_ >= static_cast<std::int64_t>(fragments_.size()))
      archive.refuse("fragment under way", "is " + std::to_string(asked_));
    archive.value("iteration that ends its round", answer_due_);
    // Whoever looks for what is not finite finds segments in a whole block.
    if (asked_ >= 0)
      archive.values("sum of outer differences", archive.looks() ? difference_.span() : of(asked_, difference_));
  }
  Capabilities capabilities() override { return {.residual = coded_ ? &*coded_ : nullptr}; }

 private:
  static std::span<float> slice(const Fragment& fragment, FloatBlock& block) {
    return block.span().subspan(fragment.offset, fragment.length);
  }
  std::span<float> of(std::int64_t f, FloatBlock& block) {
    return slice(fragments_[static_cast<std::size_t>(f)], block);
  }

  void ask(std::size_t f, Iteration k) {
    const Fragment& fragment = fragments_[f];
    const auto d = slice(fragment, difference_);
    {
      const PhaseTimer timer(context_.ledger, Phase::encode);
      const auto phi = slice(fragment, phi_), x = slice(fragment, context_.replica.values);
      for (std::size_t i = 0; i < d.size(); ++i) d[i] = phi[i] - x[i];
    }
    require_finite_difference(context_.replica.layout, fragment.offset, d);
    asked_ = static_cast<std::int64_t>(f);
    answer_due_ = k + settings_.delay_steps;
    if (coded_) return ask_coded(fragment, d);
    for (SegmentId s = fragment.segments.first; s <= fragment.segments.last; ++s) context_.ledger.event(s);
    queue_.submit([this, d] { ring_all_reduce(Group(context_.peers), d); }, fragment.segments);
  }
  void ask_coded(const Fragment& fragment, std::span<float> d) {
    SparseVector own;
    {
      const PhaseTimer timer(context_.ledger, Phase::select);
      own = coded_->take(d, fragment.offset);
    }
    queue_.submit([this, d, offset = fragment.offset, own = std::move(own)] { coded_->sum(own, offset, d); },
                  fragment.segments);
  }
  void end_round(const Fragment& fragment) {
    queue_.wait();
    const PhaseTimer timer(context_.ledger, Phase::mix);
    if (coded_) {
      coded_->settle();
      coded_->end_round();
    }
    const auto d = slice(fragment, difference_), phi = slice(fragment, phi_),
               x = slice(fragment, context_.replica.values);
    divide_by_ranks(context_, fragment.offset, d);
    optimizer_.step(d, fragment.offset, phi);
    const auto alpha = static_cast<float>(settings_.blend);
    if (alpha == 0.0F)
      std::ranges::copy(phi, x.begin());
    else
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = (1.0F - alpha) * phi[i] + alpha * x[i];
    asked_ = -1;
  }

  ExchangeContext context_;
  DilocoSettings settings_;
  std::vector<Fragment> fragments_;
  OuterOptimizer optimizer_;
  FloatBlock phi_;                 // where rounds began
  FloatBlock difference_;          // of the fragment under way, and then the sum
  std::optional<CodedSum> coded_;  // where what is news travels
  std::int64_t asked_ = -1;
  Iteration answer_due_ = -1;
  CollectiveQueue queue_;  // goes first: its jobs use what is above
};

DilocoSettings read_diloco_settings(Config& exchange, Config& root) {
  DilocoSettings settings;
  settings.outer = read_outer(exchange, {.local_steps = 50, .learning_rate = 0.7, .momentum = 0.9});
  settings.fragments = static_cast<std::size_t>(exchange.integer(
      "fragments", 1, Range::between(1, 1e6), "parts of the model whose rounds end one after the other (F)"));
  settings.delay_steps = exchange.integer("delay_steps", 0, Range::at_least(0),
                                          "local steps that go on while a fragment's sum travels (τ)");
  settings.blend =
      exchange.real("blend", 0.0, Range::fraction_below_one(),
                    "what a rank keeps of its own x at the end of a round (α); those τ steps are lost at 0");
  const auto between = settings.outer.local_steps / static_cast<Iteration>(settings.fragments);
  exchange.require(between >= 1, "fragments",
                   "more than local_steps (" + std::to_string(settings.outer.local_steps) +
                       "): one fragment's round ends in a step at most; use fewer fragments or more local_steps");
  exchange.require(settings.delay_steps < std::max<Iteration>(between, 1), "delay_steps",
                   "must be less than local_steps / fragments, " + std::to_string(between) +
                       ": one fragment is under way at a time");
  Config section = root.section("sparsify");
  Sparsifier read = read_sparsifier(section, {.per_segment = true, .scope_is_fixed = true, .news = true});
  section.require(read.news || (read.dense && read.codec->exact()), "selector",
                  "diloco sends whole differences or, with quantiser: {name: dead_zone}, what of them is news. For "
                  "another selection or rounding take exchange: {name: sparseloco}");
  settings.sparsifier = std::make_shared<const Sparsifier>(std::move(read));
  return settings;
}

class DiLoCoPlan final : public CollectivePlan {
 public:
  DiLoCoPlan(Config& exchange, Config& root) : settings_(read_diloco_settings(exchange, root)) {
    exchange.choice("schedule", "lockstep", {"lockstep"}, "all ranks end a round together",
                    "; the mean is of the same round of all ranks. Leave it at lockstep, or take gossip_outer");
  }
  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const auto p = static_cast<std::size_t>(topology.ranks());
    if (!news()) return 2 * (p - 1) * layout.size() * sizeof(float);
    std::size_t message = 0;
    for (const Fragment& fragment : fragments(layout))
      message += gather_header_bytes + SparseWire(*settings_.sparsifier->codec, fragment.length, {})
                                           .bound(SumStep::most_news(*news(), fragment.length));
    return p * (p - 1) * message;
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    ExchangeCost round =
        news() ? coded_round(layout, topology, assumptions) : dense_round(layout, topology, assumptions);
    constexpr double words = 10.0;  // D of φ and x; φ, m, D and x at the end; the sum's are counted
    ExchangeCost cost = of_an_iteration(round, settings_.outer.local_steps, words * static_cast<double>(layout.size()));
    cost.overlaps = settings_.delay_steps > 0;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return std::make_unique<DiLoCo>(context, settings_);
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    const std::size_t block = layout.size() * sizeof(float);
    const std::size_t of_sum =
        news() ? block + coded_bytes(layout, ranks) : block / settings_.fragments / static_cast<std::size_t>(ranks);
    return 2 * block + OuterOptimizer::bytes(settings_.outer, layout.size()) + of_sum;
  }
  Iteration local_steps() const override { return settings_.outer.local_steps; }
  ExchangeLaws laws() const override {
    const bool at_once = settings_.delay_steps == 0 && settings_.blend == 0.0;
    return {.replicas_agree = at_once && settings_.outer.local_steps == 1,
            .keeps_mass = at_once && settings_.outer.plain() && !news()};
  }

 private:
  void require_fitting(const Layout& layout) const override {
    static_cast<void>(fragments(layout));
    if (news()) require_positions(layout.size(), "the model");
  }
  /// Lists of a fragment's sum and what it owed before, where local steps go on meanwhile; candidates, of which a
  /// shorter fragment may have more.
  std::size_t coded_bytes(const Layout& layout, int ranks) const {
    const Sparsifier& sparsifier = *settings_.sparsifier;
    std::size_t lists = 0, candidates = 0, before = 0;
    for (const Fragment& fragment : fragments(layout)) {
      Layout alone;
      alone.append("fragment", {static_cast<std::int64_t>(fragment.length)});
      lists = std::max(lists, gathered_sum_lists(ranks) * list_bytes(sparsifier, alone));
      candidates = std::max(candidates, candidate_bytes(sparsifier, alone));
      before = std::max(before, settings_.delay_steps > 0 ? fragment.length * sizeof(float) : 0);
    }
    return lists + candidates + before;
  }
  const std::optional<StepRule>& news() const { return settings_.sparsifier->news; }
  std::vector<Fragment> fragments(const Layout& layout) const {
    return fragments_of(layout, settings_.fragments, settings_.outer.local_steps);
  }
  ExchangeCost dense_round(const Layout& layout, const Topology& topology, const CostAssumptions& assumptions) const {
    ExchangeCost round = allreduce_cost(topology.ranks(), layout.size(), settings_.fragments, assumptions);
    round.message_bytes = static_cast<double>(layout.size() * sizeof(float)) /
                          static_cast<double>(settings_.fragments) / topology.ranks();
    return round;
  }
  ExchangeCost coded_round(const Layout& layout, const Topology& topology, const CostAssumptions& assumptions) const {
    ExchangeCost round = gathered_cost(
        {.ranks = topology.ranks(),
         .values = layout.size(),
         .k = usual_entries(*settings_.sparsifier, layout),
         .message_bytes = usual_bytes(*settings_.sparsifier, layout) + settings_.fragments * gather_header_bytes},
        assumptions);
    for (CommunicationCost* messages : {&round.inside, &round.between})
      messages->messages *= static_cast<double>(settings_.fragments);
    return round;
  }

  DilocoSettings settings_;
};

}  // namespace

ExchangeEntry diloco_exchange() {
  return {
      .name = "diloco",
      .summary = "H local steps, then an outer step with momentum along the mean of all ranks; in fragments: Streaming",
      .equation =
          "every H iterations: D <- 1/P sum_i (phi - x_i);  m <- mu m + D;  phi <- phi - eta (D + mu m);  "
          "x_i <- phi",
      .cost = "a round: 2 (P - 1) messages a fragment, 2 (P - 1)/P 4 n bytes a rank; three blocks of memory",
      .citation = "douillard2023diloco, Algorithm 1; douillard2025streaming",
      .make = [](Config& exchange, Config& root) -> std::unique_ptr<ExchangePlan> {
        return std::make_unique<DiLoCoPlan>(exchange, root);
      }};
}

}  // namespace hearsay
