#pragma once
// Keys of `optimizer:` that optimizers share. Private to their files.
#include <string_view>
#include <tuple>

#include "base/config/config.hpp"

namespace hearsay {

/// Rates become floats, which end at 3.4e38, after a division by as little as 1 - beta^k.
inline constexpr double largest_rate = 1e30;
inline constexpr Range rate_above_zero{.min = 0.0, .max = largest_rate, .min_excluded = true};
inline constexpr Range rate_from_zero{.min = 0.0, .max = largest_rate};

inline double read_learning_rate(Config& config, double fallback) {
  return config.real("learning_rate", fallback, rate_above_zero, "eta, the step size");
}

inline double read_weight_decay(Config& config, double fallback, std::string_view meaning) {
  return config.real("weight_decay", fallback, rate_from_zero, meaning);
}

inline constexpr std::string_view l2_penalty = "lambda: g <- g + lambda x";
inline constexpr std::string_view decoupled_decay = "lambda: x <- (1 - eta lambda) x";

/// What is ours beside LibTorch's options.
struct OptimizerExtras {
  double clip_norm = 0.0;  // 0: no clipping
  bool decay_matrices_only = false;
};

inline OptimizerExtras read_extras(Config& config) {
  return {
      .clip_norm = config.real("clip_norm", 0.0, rate_from_zero,
                               "scale the gradient of a step, mixed or corrected as the exchange leaves it, down to "
                               "this Euclidean norm over all parameters; 0: do not"),
      .decay_matrices_only = config.flag("decay_matrices_only", false,
                                         "weight decay spares biases, gains and whatever else has one dimension")};
}

/// LibTorch's options of Adam's kin; `learning_rate` and `weight_decay` are the defaults.
template <class Options>
Options read_adam(Config& config, double learning_rate, double weight_decay, std::string_view weight_decay_meaning) {
  Options options(read_learning_rate(config, learning_rate));
  const double beta1 = config.real("beta1", 0.9, Range::fraction_below_one(), "decay of the first moment");
  const double beta2 = config.real("beta2", 0.999, Range::fraction_below_one(), "decay of the second moment");
  options.betas(std::make_tuple(beta1, beta2));
  options.eps(config.real("epsilon", 1e-8, rate_above_zero, "added to the root of the second moment"));
  options.weight_decay(read_weight_decay(config, weight_decay, weight_decay_meaning));
  options.amsgrad(config.flag("amsgrad", false, "use the largest second moment so far"));
  return options;
}
/// Blocks of their floats that it keeps.
template <class Options>
int blocks_of_adam(const Options& options) {
  return options.amsgrad() ? 3 : 2;
}

}  // namespace hearsay
