// Gradient tracking: every rank steps along what it knows of the mean of all gradients.
//   start:    x_i and y_i travel
//   finish:   x_i ← Σ_j w_ij x_j;  y_i ← Σ_j w_ij y_j + g_i(k) − g_i(k − 1);  the optimizer then applies y_i
// nedic2017achieving, DIGing; with stochastic gradients pu2021stochastic, there mixed after the step.
// Σ y_i = Σ g_i at every iteration: where y agrees with its neighbours it is the mean. So ranks with unlike data come
// to rest at the minimum of the sum, which D-PSGD with a constant η does not reach. y_0 = g_0.
// Deviates from the paper in: on a graph that changes, y_i(k − 1) is mixed by the W of iteration k, in which it
// travels with x_i(k); there by that of k − 1. Asynchronous ranks would count a gradient twice or not at all, and are
// refused. An optimizer with momentum applies it to y.
// Cost per iteration and directed edge: one message a segment, 8·n bytes of values; memory: two blocks a neighbour, two
// for x and y and one for g(k − 1); time: deg + 2 passes over 2 n values to mix, 10 words for each value.
#include "runtime/exchange/neighbour/momentum_tracking.hpp"

namespace hearsay {

ExchangeEntry gradient_tracking_exchange() {
  return {.name = "gradient_tracking",
          .summary = "ranks step along a tracked mean of all gradients: the minimum of the sum whatever their data",
          .equation = "x_i <- sum_j w_ij x_j - eta y_i;  y_i <- sum_j w_ij y_j + g_i(k) - g_i(k-1)",
          .cost = "messages as dpsgd, twice its bytes: 8 n; three more blocks of memory, one more a neighbour",
          .citation = "nedic2017achieving, DIGing; pu2021stochastic",
          .make = [](Config& exchange, Config&) { return tracking_plan(exchange, 0.0); }};
}

}  // namespace hearsay
