// Push-sum (stochastic gradient push): averaging where edges count one way only.
//   start:    n_i and w_i travel
//   finish:   n_i ← Σ_j p_ij n_j;  w_i ← Σ_j p_ij w_j;  the optimizer steps on n_i: n_i ← n_i − η g_i(z_i)
//   stepped:  z_i ← n_i / w_i, the replica that the model sees
// assran2019sgp, Algorithm 1; nedic2016push. p_ij is the share of what j has that goes to i: columns sum to 1, rows
// need not. So Σ n_i and Σ w_i = P are kept, and n_i drifts to where the graph pushes most; w_i drifts with it, and
// z_i does not. n_0 = x_0, w_0 = 1. With a doubly stochastic W all w_i stay 1 and it is dpsgd.
// Deviates from the paper in: n_k is mixed while the gradient is computed (adapt while communicate); there the step
// comes first. The scalar w travels once a tensor, behind its values. Between finish and stepped the replica holds n,
// so that any optimizer steps on n. Asynchronous ranks send mass instead of copies: push_sum_asynchronous.cpp.
// Cost per iteration and directed edge: one message a segment, 4 (n + 1) bytes of values a segment of n; memory: one
// block a neighbour, and one for n; time: deg + 2 memory passes to mix, 6 words for each value.
#include "runtime/exchange/neighbour/push_sum.hpp"

#include <algorithm>
#include <cstdio>

#include "runtime/exchange/neighbour/augmented.hpp"
#include "runtime/exchange/neighbour/plan.hpp"
#include "topology/steady_weights.hpp"

namespace hearsay {
namespace {

class PushSum final : public Exchange, public Measures {
 public:
  explicit PushSum(const ExchangeContext& context) : context_(context), link_(context, push_sum_weight, 1.0F) {}

  void start(Iteration k) override {
    if (!begun_) link_.take_x();  // n_0 is what the replica holds by now
    begun_ = true;
    link_.send(k);
  }
  void finish(Iteration k) override { link_.mix(k); }
  void stepped(Iteration) override {
    const PhaseTimer timer(context_.ledger, Phase::mix);
    link_.take_x();
    const Layout& layout = context_.replica.layout;
    for (SegmentId s = 0; s < layout.count(); ++s) {
      const float w = link_.beside(s)[0];
      for (float& z : context_.replica.values.segment(layout[s])) z /= w;
    }
  }
  void state(Archive& archive) override {
    link_.state(archive);
    if (archive.loads()) begun_ = true;
  }
  Capabilities capabilities() override { return {.measures = this}; }
  std::span<const std::uint8_t> events() const override { return link_.events(); }

 private:
  ExchangeContext context_;
  AugmentedLink link_;
  bool begun_ = false;
};

std::unique_ptr<ExchangePlan> make_push_sum(Config& exchange, Config&) {
  const Schedule schedule = read_schedule(exchange);
  const std::size_t in_flight = read_in_flight(exchange, schedule);
  if (schedule == Schedule::asynchronous) return asynchronous_push_sum(in_flight);
  return neighbour_plan({.beside = push_sum_weight,
                         .words = 6.0,
                         .laws = {.follows_phases = true, .along_arcs = true},
                         .warnings = push_sum_warnings,
                         .build = [](const ExchangeContext& context) { return std::make_unique<PushSum>(context); }});
}

}  // namespace

std::vector<std::string> push_sum_warnings(const Topology& topology) {
  constexpr double small = 0.25;
  const std::vector<double> weights = steady_weights(topology);
  const auto least = std::ranges::min_element(weights);
  if (*least >= small) return {};
  char text[240];
  std::snprintf(
      text, sizeof text,
      "push_sum: on this graph the weight of rank %td settles at %.2g, so its steps are %.2g times as long as "
      "those of an even graph; divide the learning rate by that, or give this rank more in-neighbours",
      least - weights.begin(), *least, 1.0 / *least);
  return {text};
}

ExchangeEntry push_sum_exchange() {
  return {.name = "push_sum",
          .summary = "stochastic gradient push: averages on directed graphs, by weights that travel with the values",
          .equation = "n_i <- sum_j p_ij n_j - eta g_i(z_i);  w_i <- sum_j p_ij w_j;  z_i = n_i / w_i",
          .cost = "as dpsgd and 4 bytes a message; one more block of memory",
          .citation = "assran2019sgp, Algorithm 1; nedic2016push",
          .make = make_push_sum};
}

}  // namespace hearsay
