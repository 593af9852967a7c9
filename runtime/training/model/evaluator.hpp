#pragma once
// What the network as a whole has learnt: the averaged model x̄ = (1/P) Σ x_i, how far the ranks are from it, and what
// each rank's own model is worth.
#include <filesystem>
#include <vector>

#include "runtime/training/model/batches.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/transport/communicator.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/ledger.hpp"

namespace hearsay {

/// Evaluation leaves no trace: afterwards parameters, gradients, buffers, the training mode and LibTorch's generator
/// are bit for bit what they were.
///
/// All of it is collective. MPI is entered by the engine only, and what MPI works on belongs to the evaluator, so that
/// an operation that is given up (a stop signal) finds its memory in place. Time goes to Phase::evaluate.
class Evaluator {
 public:
  /// Everything must outlive the evaluator. Throws DataError if there is nothing to test on.
  Evaluator(Model& model, TestSet test, Communicator& communicator, CommunicationEngine& engine, Ledger& ledger);

  struct MeanModel {
    std::vector<MetricValue> metrics{};  ///< of x̄, over the whole test set; one a measure of the model's objective
    double loss = 0.0;                   ///< likewise
    double consensus_distance = 0.0;     ///< √(1/P Σ_i ‖x_i − x̄‖²)
    double norm = 0.0;                   ///< ‖x̄‖
  };
  /// Floating-point buffers are averaged like parameters. Every rank tests x̄ on its part of the test set; the same
  /// numbers come out on every rank. Cost: one allreduce of the replica, one forward pass over |test|/P examples.
  MeanModel mean_model();
  /// Throws DataError if an input of the test set is NaN or infinite, on all ranks alike.
  void require_finite_inputs() const;

  struct Ranks {
    std::vector<MetricValue> worst{}, mean{};  ///< over ranks; one a measure
  };
  /// Every rank tests its own model on the whole test set.
  Ranks every_rank();

  /// Rank 0 writes x̄ with averaged buffers, as Model::save does, and as Model::save_state_dict does where that has a
  /// name.
  void save_mean_model(const std::filesystem::path& file, const std::filesystem::path& state_dict = {},
                       const std::string& run_id = "");

 private:
  class Untouched;
  void average();
  void load_average();
  Score score(std::size_t first, std::size_t last);

  Model& model_;
  TestSet test_;
  Communicator& communicator_;
  CommunicationEngine& engine_;
  Ledger& ledger_;
  std::vector<torch::Tensor> averaged_buffers_;  // the floating-point tensors of model_.other_state()
  std::vector<float> mean_;                      // x̄, then the buffers
  std::vector<double> sums_, lowest_;
};

}  // namespace hearsay
