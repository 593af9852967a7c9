#include "runtime/exchange/neighbour/plan.hpp"

#include <utility>

#include "runtime/exchange/neighbour/link/sizes.hpp"

namespace hearsay {
namespace {

class NeighbourPlan final : public ExchangePlan {
 public:
  explicit NeighbourPlan(NeighbourAlgorithm algorithm) : its_(std::move(algorithm)) { its_.laws.along_graph = true; }

  std::size_t packet_bound(const Layout& layout, int) const override {
    for (const Segment& s : layout.segments())
      if (!travels_whole(sparsifier(), s.length)) require_positions(s.length, "parameter '" + s.name + "'");
    if (counts_in_steps(sparsifier())) require_positions(layout.size(), "a model whose values are events");
    return its_.links * packet_of_link(layout);
  }
  std::optional<ExchangeCost> cost(const Layout& layout, const Topology& topology,
                                   const CostAssumptions& assumptions) const override {
    CostAssumptions of_link = assumptions;
    if (!its_.by_events) of_link.event_fraction = 1.0;
    const double moved = of_link.event_fraction;
    // Where values are events, the fraction is of them, and a packet is as long as they make it.
    std::size_t packet = packet_of_link(layout);
    if (counts_in_steps(sparsifier()))
      packet = static_cast<std::size_t>(packet_of_events(layout, std::exchange(of_link.event_fraction, 1.0)));
    ExchangeCost cost =
        link_cost(block(layout), topology, packet, selection(layout), its_.link.keep_own_copies, of_link);
    cost = of_links(cost);
    cost.local = cost.local + its_.correction.work(layout, topology, moved) +
                 LocalWork{.moved_bytes = its_.words * sizeof(float) * static_cast<double>(layout.size())};
    cost.waits = its_.link.waits();
    cost.overlaps = its_.link.strategy == Strategy::consensus;
    return cost;
  }
  std::unique_ptr<Exchange> build(const ExchangeContext& context) const override { return its_.build(context); }
  std::size_t kept_bytes(const Layout& layout, std::size_t neighbours, int ranks) const override {
    const Layout sent = block(layout);
    const std::size_t packet = packet_bound(layout, ranks) / its_.links,
                      own = its_.blocks * layout.size() + (its_.beside ? sent.size() : 0);
    return own * sizeof(float) + its_.correction.kept_bytes(layout) +
           (its_.keeps_copies ? its_.links * link_bytes(sent, its_.link, sparsifier(), neighbours, packet)
                              : neighbours * its_.link.in_flight * packet);
  }
  Schedule schedule() const override { return its_.link.schedule; }
  bool moves_at_start() const override {
    return its_.link.strategy == Strategy::diffusion || ExchangePlan::moves_at_start();
  }
  std::optional<std::size_t> in_flight() const override { return its_.link.limit(); }
  bool runs_on_gpus() const override {
    return its_.on_devices && (!its_.sparsifier || gpus_select_changes(sparsifier()));
  }
  std::vector<std::string> warnings_on_gpus() const override {
    if (!runs_on_gpus()) return ExchangePlan::warnings_on_gpus();
    const bool rounds = its_.sparsifier && sparsifier().codec && !sparsifier().codec->exact();
    if (!rounds || sparsifier().codec->step_rule() || gpus_quantise(sparsifier())) return {};
    return {
        "train.device: the processor writes and reads what this quantiser rounds, or what the selector `sampled` "
        "keeps of it: values cross the bus as floats, and once more back. int8, fp4, two_bit and one_bit (not "
        "`centre: row_mean`) of other selectors are a GPU's own"};
  }
  bool survives_deaths() const override { return its_.survives_deaths; }
  std::vector<std::string> warnings(const Topology& topology) const override {
    std::vector<std::string> said = its_.warnings ? its_.warnings(topology) : ExchangePlan::warnings(topology);
    const std::optional<LinearIteration> iteration = its_.linear ? its_.linear(topology) : std::nullopt;
    if (said.empty() && iteration && never_stable(*iteration, topology))
      said.emplace_back(
          "exchange: what ranks mix moves them apart on this graph, however short the steps are: take a smaller gamma, "
          "another topology.weights, e.g. metropolis, or no delay");
    return said;
  }
  std::optional<Stability> stability(const Topology& topology, const StepResponse& step) const override {
    const std::optional<LinearIteration> iteration = its_.linear ? its_.linear(topology) : std::nullopt;
    return iteration ? stability_of(*iteration, topology, step) : std::nullopt;
  }
  ExchangeLaws laws() const override { return its_.laws; }

 private:
  const Sparsifier& sparsifier() const {
    static const Sparsifier nothing_selected{};
    return its_.sparsifier ? *its_.sparsifier : nothing_selected;
  }
  /// What a link sends to a neighbour, at most.
  std::size_t packet_of_link(const Layout& layout) const {
    return hearsay::packet_bound(sparsifier(), block(layout), std::vector<std::uint8_t>(layout.count(), 1));
  }
  /// One link's cost, as often as there are links.
  ExchangeCost of_links(ExchangeCost cost) const {
    const ExchangeCost one = cost;
    for (std::size_t more = 1; more < its_.links; ++more) {
      cost.inside = cost.inside + one.inside;
      cost.between = cost.between + one.between;
      cost.sent_bytes += one.sent_bytes;
      cost.local = cost.local + one.local;
    }
    return cost;
  }
  /// What travels.
  Layout block(const Layout& layout) const { return its_.beside ? augmented(layout, its_.beside) : layout; }
  /// The values x − x̂ are written into a block of their own and read twice, where error feedback reads its sum once.
  LocalWork selection(const Layout& layout) const {
    constexpr double words_of_difference = 3.0;
    LocalWork work;
    for (const Segment& s : layout.segments()) {
      if (travels_whole(sparsifier(), s.length)) continue;
      const std::size_t k = kept_count(sparsifier().selector->density(), s.length);
      const auto length = static_cast<double>(s.length);
      work = work + selection_work(length, static_cast<double>(k), sparsifier().selector->reads(k));
      work.moved_bytes += words_of_difference * sizeof(float) * length;
    }
    return work;
  }

  NeighbourAlgorithm its_;
};

}  // namespace

std::unique_ptr<ExchangePlan> neighbour_plan(NeighbourAlgorithm algorithm) {
  return std::make_unique<NeighbourPlan>(std::move(algorithm));
}

}  // namespace hearsay
