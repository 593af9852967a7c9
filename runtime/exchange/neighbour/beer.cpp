// BEER: gradient tracking whose models and trackers travel compressed, with error feedback.
//   start:    C(x_i − x̂_i) and C(y_i − ŷ_i) travel, and x̂_i, ŷ_i move by them on both ends
//   finish:   x_i ← x_i + γ Σ_j w_ij (x̂_j − x̂_i);  y_i ← y_i + γ Σ_j w_ij (ŷ_j − ŷ_i) + g_i(k) − g_i(k − 1);
//             the optimizer then applies y_i
// zhao2022beer, Algorithm 1, whose H and G are x̂ and ŷ. It is motef.cpp without momentum, and all that is said there
// holds.
#include "runtime/exchange/neighbour/compressed.hpp"

namespace hearsay {

ExchangeEntry beer_exchange() {
  return {.name = "beer",
          .summary = "gradient tracking, compressed: the minimum of the sum whatever the data, with sparse messages",
          .equation =
              "as gradient_tracking, with x_i + gamma sum_j w_ij (xhat_j - xhat_i) in place of sum_j w_ij x_j; y alike",
          .cost = "twice the messages of dpsgd, whole or sparse; two copies a neighbour and four blocks of memory",
          .citation = "zhao2022beer, Algorithm 1",
          .make = [](Config& exchange, Config& root) { return compressed_tracking_plan(exchange, root, 0.0); }};
}

}  // namespace hearsay
