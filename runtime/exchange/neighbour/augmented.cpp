#include "runtime/exchange/neighbour/augmented.hpp"

#include <algorithm>
#include <utility>

namespace hearsay {
namespace {

Layout augmented(const Layout& layout, const Beside& beside) {
  Layout block;
  for (const Segment& s : layout.segments())
    block.append(s.name, {static_cast<std::int64_t>(s.length + beside(s.length))});
  return block;
}

class AugmentedPlan final : public ExchangePlan {
 public:
  explicit AugmentedPlan(AugmentedAlgorithm algorithm) : algorithm_(std::move(algorithm)) {}

  std::size_t packet_bound(const Layout& layout, int) const override { return bound(block(layout)); }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    const Layout sent = block(layout);
    ExchangeCost cost = link_cost(sent, topology, bound(sent), {}, false, {.hosts = assumptions.hosts});
    const double bytes = algorithm_.words * sizeof(float) * static_cast<double>(layout.size());
    cost.local = cost.local + LocalWork{.moved_bytes = bytes};
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override { return algorithm_.build(context); }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int) const override {
    const Layout sent = block(layout);
    return link_bytes(sent, {}, {}, neighbours, bound(sent)) +
           (sent.size() + algorithm_.blocks * layout.size()) * sizeof(float);
  }
  std::vector<std::string> warnings(const Topology& topology) const override { return algorithm_.warnings(topology); }
  Schedule schedule() const override { return Schedule::lockstep; }
  ExchangeLaws laws() const override {
    return {.along_graph = true,
            .follows_turns = true,
            .along_arcs = algorithm_.along_arcs,
            .keeps_mass = algorithm_.keeps_mass};
  }

 private:
  Layout block(const Layout& layout) const { return augmented(layout, algorithm_.beside); }
  static std::size_t bound(const Layout& block) {
    return sizeof(PacketHeader) + block.count() * sizeof(SegmentHeader) + block.size() * sizeof(float);
  }

  AugmentedAlgorithm algorithm_;
};

}  // namespace

AugmentedLink::AugmentedLink(const ExchangeContext& context, const Beside& beside, float initial)
    : context_(context),
      layout_(context.replica.layout),
      values_(augmented(layout_, beside).size()),
      // Nobody asks for gradients of the block: a second one would be memory for nothing.
      block_(augmented(layout_, beside), values_.span(), values_.span()),
      link_(of_block(context, initial), {}, {}),
      every_segment_(layout_.count(), std::uint8_t{1}) {}

ExchangeContext AugmentedLink::of_block(const ExchangeContext& context, float initial) {
  block_.device = context.replica.device;
  std::ranges::fill(values_.span(), initial);
  take_x();
  return context.with(block_);
}

void AugmentedLink::take_x() {
  for (SegmentId s = 0; s < layout_.count(); ++s)
    std::ranges::copy(context_.replica.values.segment(layout_[s]), x(s).begin());
}

void AugmentedLink::send(Iteration k) {
  for (SegmentId s = 0; s < every_segment_.size(); ++s) context_.ledger.event(s);
  link_.send(k, every_segment_);
}

void AugmentedLink::mix(Iteration k) {
  link_.receive(k);
  const PhaseTimer timer(context_.ledger, Phase::mix);
  context_.device().mix_row(static_cast<float>(context_.neighbourhood.self_weight), link_.edges(k),
                            block_.values.span());
  for (SegmentId s = 0; s < layout_.count(); ++s)
    std::ranges::copy(x(s), context_.replica.values.segment(layout_[s]).begin());
}

std::unique_ptr<ExchangePlan> augmented_plan(AugmentedAlgorithm algorithm) {
  return std::make_unique<AugmentedPlan>(std::move(algorithm));
}

void read_lockstep(Config& exchange, std::string_view why_not) {
  exchange.choice("schedule", "lockstep", {"lockstep"}, "wait for every neighbour's packet of an iteration", why_not);
}

}  // namespace hearsay
