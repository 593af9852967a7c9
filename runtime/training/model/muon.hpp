#pragma once
#include "runtime/training/model/optimizer.hpp"

namespace hearsay {

OptimizerEntry muon_optimizer();

}  // namespace hearsay
