// The table of optimizers: a new one is a file of its own, a declaration and a line here.
#include <array>

#include "runtime/training/model/optimizer.hpp"

namespace hearsay {

OptimizerEntry sgd_optimizer();
OptimizerEntry adam_optimizer();
OptimizerEntry adamw_optimizer();
OptimizerEntry adagrad_optimizer();
OptimizerEntry muon_optimizer();

std::span<const OptimizerEntry> optimizers() {
  static const std::array table{sgd_optimizer(), adam_optimizer(), adamw_optimizer(), adagrad_optimizer(),
                                muon_optimizer()};
  return table;
}

}  // namespace hearsay
