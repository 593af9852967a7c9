#include "runtime/exchange/global/parts/sparse_sgd.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "runtime/exchange/collective_plan.hpp"
#include "runtime/exchange/global/parts/global.hpp"
#include "runtime/replica/finite.hpp"
#include "sparsify/quantisers/sum_step.hpp"

namespace hearsay {
namespace {

class GatheredSum final : public SparseCollective {
 public:
  explicit GatheredSum(std::function<void(SparseSum& found, std::size_t k)> then) : then_(std::move(then)) {}

  SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t k) override {
    SparseSum found = gathered_sum(group, own, wire);
    if (then_) then_(found, k);
    return found;
  }
  // Who selects among the entries of the sum has candidates, for which there is a quarter more room.
  std::size_t lists(int ranks) const override {
    return gathered_sum_lists(ranks) + (then_ ? 2 * static_cast<std::size_t>(ranks) : 0);
  }
  std::size_t worst_case_bytes(int ranks, std::size_t message) const override {
    const auto p = static_cast<std::size_t>(ranks);
    return p * (p - 1) * (message + gather_header_bytes);
  }
  ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const override {
    shape.message_bytes += gather_header_bytes;
    return gathered_cost(shape, assumptions);
  }

 private:
  std::function<void(SparseSum& found, std::size_t k)> then_;
};

class MeanOfSenders final : public SparseCollective {
 public:
  SparseSum sum(const Group& group, const SparseVector& own, const SparseWire& wire, std::size_t) override {
    SparseSum found = gathered_mean_of_senders(group, own, wire);
    for (float& value : found.total.values) value *= static_cast<float>(group.size());
    return found;
  }
  std::size_t lists(int ranks) const override { return gathered_mean_lists(ranks); }
  bool keeps_mass() const override { return false; }
  std::size_t worst_case_bytes(int ranks, std::size_t message) const override {
    return gathered_->worst_case_bytes(ranks, message);
  }
  ExchangeCost cost(SparseShape shape, const CostAssumptions& assumptions) const override {
    return gathered_->cost(shape, assumptions);
  }

 private:
  std::unique_ptr<SparseCollective> gathered_ = gathered_collective();
};

/// What of the residual is news: in the processor's memory.
class NewsOfSums final : public SumSelection {
 public:
  NewsOfSums(const Layout& layout, SumStep& step) : layout_(layout), step_(step) {}

  void take(std::span<float> r, std::span<const float> addend, float scale, double,
            std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    step_.adds(addend, scale);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] += scale * addend[i];
    try {
      step_.select(r, positions);
    } catch (const DivergenceError& error) {
      name_segment(layout_, 0, r, "gradient", error);
    }
    values.resize(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) values[i] = std::exchange(r[positions[i]], 0.0F);
  }

 private:
  const Layout& layout_;
  SumStep& step_;
};

class SparseSgd final : public Exchange, public Measures, public Residual {
 public:
  SparseSgd(const ExchangeContext& context, const SparseSgdSettings& settings,
            std::unique_ptr<SparseCollective> collective)
      : context_(context),
        sparsifier_(settings.sparsifier->fresh()),
        step_(sparsifier_.news ? std::optional<SumStep>(*sparsifier_.news) : std::nullopt),
        selection_(step_ ? std::make_unique<NewsOfSums>(context.replica.layout, *step_)
                         : context.device().select_sums(context.replica.layout, sparsifier_)),
        collective_(std::move(collective)),
        feedback_(settings.feedback, context.replica.layout.size(), context.peers.size(), context.replica.device),
        wire_(*sparsifier_.codec, context.replica.layout.size(), row_ends(context.replica.layout), &context.ledger,
              step_ ? &*step_ : nullptr) {}

  void start(Iteration) override {}

  void finish(Iteration k) override {
    const auto g = context_.replica.gradients.span();
    const double density = sparsifier_.density(epoch_of(context_, k));
    const SparseVector own = select(g, density);
    const std::size_t entries =
        step_ ? step_->usual_news(g.size()) : BlockSelection(sparsifier_, context_.replica.layout).count(density);
    SparseSum found;
    run_collective(context_, [&] { found = collective_->sum(Group(context_.peers), own, wire_, entries); });
    const PhaseTimer timer(context_.ledger, Phase::mix);
    feedback_.give_back(found.returned);
    feedback_.mask(found.included.indices);
    set_to_mean(context_, 0, g, found.total);
  }
  Capabilities capabilities() override { return {.measures = this, .residual = this}; }
  std::vector<Share> shares() const override { return collective_->shares(); }
  void add_residual(std::span<float> block) const override { feedback_.add_residual(block); }
  void take_residual(std::span<const float> sum) override { take_own_part(feedback_, context_.peers, sum); }
  void state(Archive& archive) override {
    sparsifier_.selector->state(archive);
    if (step_) step_->state(archive);
    feedback_.state(archive);
    collective_->state(archive);
  }

 private:
  SparseVector select(std::span<float> g, double density) {
    const PhaseTimer timer(context_.ledger, Phase::select);
    SparseVector own = feedback_.contribute(g, *selection_, density);
    count_events(context_, own.indices);
    return own;
  }

  ExchangeContext context_;
  Sparsifier sparsifier_;
  std::optional<SumStep> step_;  // where what is news travels
  std::unique_ptr<SumSelection> selection_;
  std::unique_ptr<SparseCollective> collective_;
  ErrorFeedback feedback_;
  SparseWire wire_;
};

class SparseSgdPlan final : public CollectivePlan {
 public:
  SparseSgdPlan(SparseSgdSettings settings, std::function<std::unique_ptr<SparseCollective>()> make)
      : settings_(std::move(settings)), make_(std::move(make)) {}

  std::size_t worst_case_bytes(const Layout& layout, const Topology& topology) const override {
    const SparseWire wire(*settings_.sparsifier->codec, layout.size(), {});
    return make_()->worst_case_bytes(topology.ranks(), wire.bound(most_entries(*settings_.sparsifier, layout)));
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    return make_()->cost(settings_.shape(layout, topology.ranks()), assumptions);
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override {
    return make_sparse_sgd(context, settings_, make_());
  }
  std::size_t kept_bytes(const Layout& layout, std::size_t, int ranks) const override {
    return feedback_bytes(settings_.feedback, layout.size()) +
           make_()->lists(ranks) * list_bytes(*settings_.sparsifier, layout) +
           candidate_bytes(*settings_.sparsifier, layout);
  }
  bool runs_on_gpus() const override { return !settings_.sparsifier->news && gpus_select_sums(*settings_.sparsifier); }
  ExchangeLaws laws() const override {
    return {.mixes = ExchangeLaws::Mixes::gradients, .replicas_agree = true, .keeps_mass = make_()->keeps_mass()};
  }

 private:
  void require_fitting(const Layout& layout) const override { require_positions(layout.size(), "the model"); }

  SparseSgdSettings settings_;
  std::function<std::unique_ptr<SparseCollective>()> make_;
};

}  // namespace

void take_own_part(ErrorFeedback& feedback, const Peers& peers, std::span<const float> sum) {
  const Part own = part_of(sum.size(), peers.size(), peers.rank());
  feedback.take_over(own.of(sum), own.begin);
}

std::unique_ptr<SparseCollective> gathered_collective(std::function<void(SparseSum& found, std::size_t k)> then) {
  return std::make_unique<GatheredSum>(std::move(then));
}

std::unique_ptr<SparseCollective> mean_of_senders_collective() { return std::make_unique<MeanOfSenders>(); }

SparseSgdSettings::SparseSgdSettings(Config& exchange, Config& root, const SparsifierDefaults& defaults)
    : feedback(read_feedback(exchange)) {
  Config section = root.section("sparsify");
  sparsifier = std::make_shared<const Sparsifier>(read_sparsifier(section, defaults));
}

SparseShape SparseSgdSettings::shape(const Layout& layout, int ranks) const {
  const std::size_t k = usual_entries(*sparsifier, layout);
  return {.ranks = ranks,
          .values = layout.size(),
          .k = k,
          .message_bytes = usual_bytes(*sparsifier, layout),
          .selector_reads = sparsifier->selector->reads(k)};
}

void accumulate_and_select(ErrorFeedback& feedback, BlockSelection& selection, std::span<const float> g, double density,
                           std::vector<std::uint32_t>& positions) {
  const float scale = feedback.clipping(g);
  if (feedback.plain()) {
    selection.add_and_select(feedback.residual(), g, scale, density, positions);
    return;
  }
  feedback.accumulate(g, 0, scale);
  selection.select(feedback.residual(), density, positions);
}

std::unique_ptr<Exchange> make_sparse_sgd(const ExchangeContext& context, const SparseSgdSettings& settings,
                                          std::unique_ptr<SparseCollective> collective) {
  return std::make_unique<SparseSgd>(context, settings, std::move(collective));
}

std::unique_ptr<ExchangePlan> plan_sparse_sgd(SparseSgdSettings settings,
                                              std::function<std::unique_ptr<SparseCollective>()> make) {
  return std::make_unique<SparseSgdPlan>(std::move(settings), std::move(make));
}

}  // namespace hearsay
