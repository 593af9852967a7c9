// In place of training.cpp where there is no LibTorch.
#include "apps/simulator/job.hpp"
#include "base/error.hpp"

namespace hearsay {

SimulatedJob read_training_job(const Config& /*root*/, SimulationPlan /*simulation*/, int /*processes*/,
                               const std::string& /*command*/) {
  throw ConfigError(
      "simulate.gradients: this simulator is built without LibTorch and cannot train a model; use gradients: "
      "synthetic, "
      "or build it with HEARSAY_TORCH=ON");
}

}  // namespace hearsay
