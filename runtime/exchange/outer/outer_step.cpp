#include "runtime/exchange/outer/outer_step.hpp"

#include "base/error.hpp"
#include "runtime/replica/finite.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

OuterOptions read_outer(Config& exchange, const OuterOptions& usual) {
  OuterOptions options;
  options.local_steps = exchange.integer("local_steps", usual.local_steps, Range::at_least(1),
                                         "iterations of a round: steps that a rank takes alone (H)");
  const OuterOptions step = read_outer_step(exchange, usual);
  options.learning_rate = step.learning_rate;
  options.momentum = step.momentum;
  return options;
}

OuterOptions read_outer_step(Config& exchange, const OuterOptions& usual) {
  OuterOptions options;
  Config outer = exchange.section("outer");
  options.learning_rate =
      outer.real("learning_rate", usual.learning_rate, {.min = 0.0, .max = 100.0, .min_excluded = true},
                 "of the outer step, along what the local steps have made (η)");
  options.momentum = outer.real("momentum", usual.momentum, Range::fraction_below_one(), "of the outer step (μ)");
  return options;
}

ExchangeCost of_an_iteration(const ExchangeCost& round, Iteration local_steps, double moved_floats) {
  const double share = 1.0 / static_cast<double>(local_steps);
  const auto scaled = [share](const CommunicationCost& cost) -> CommunicationCost {
    return {.messages = share * cost.messages, .words = share * cost.words};
  };
  ExchangeCost cost = round;
  cost.inside = scaled(round.inside);
  cost.between = scaled(round.between);
  cost.sent_bytes = share * round.sent_bytes;
  cost.local = share * (round.local + LocalWork{.moved_bytes = sizeof(float) * moved_floats});
  return cost;
}

OuterOptimizer::OuterOptimizer(const OuterOptions& options, Form form, std::size_t values)
    : learning_rate_(static_cast<float>(options.learning_rate)),
      momentum_(static_cast<float>(options.momentum)),
      form_(form),
      m_(options.momentum > 0.0 ? values : 0) {}

void OuterOptimizer::step(std::span<const float> difference, std::size_t offset, std::span<float> phi) {
  if (m_.size() == 0) {
    for (std::size_t i = 0; i < phi.size(); ++i) phi[i] -= learning_rate_ * difference[i];
    return;
  }
  const auto m = m_.span().subspan(offset, phi.size());
  const float of_difference = form_ == Form::nesterov ? 1.0F : 0.0F;
  const float of_momentum = form_ == Form::nesterov ? momentum_ : 1.0F;
  for (std::size_t i = 0; i < phi.size(); ++i) {
    m[i] = momentum_ * m[i] + difference[i];
    phi[i] -= learning_rate_ * (of_difference * difference[i] + of_momentum * m[i]);
  }
}

void OuterOptimizer::state(Archive& archive) { archive.values("outer momentum", m_.span()); }

void require_finite_difference(const Layout& layout, std::size_t offset, std::span<const float> values) {
  try {
    require_finite(values);
  } catch (const DivergenceError& error) {
    name_segment(layout, offset, values, "outer difference", error);
  }
}

}  // namespace hearsay
