#pragma once
// Examples as tensors, batch by batch, in buffers that are used again.
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/state/random_state.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/sampler.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {

/// What is to be said of a loss that is not a number: throws DataError if it cannot be one, since inputs of the batch
/// are not finite either.
void require_finite_inputs(const Batch& batch, int rank, std::int64_t iteration);

/// Room for a batch of examples, filled from indices.
class ExampleBuffer {
 public:
  ExampleBuffer(ExampleShape shape, std::shared_ptr<const Examples> examples)
      : shape_(std::move(shape)), examples_(std::move(examples)) {}
  /// Inputs and targets (B, sizes…), float or int64, padded ones cut. Valid until the next call. `augmentation` may be
  /// nullptr.
  Batch batch(std::span<const std::uint32_t> indices, Random* augmentation);

 private:
  ExampleShape shape_;
  std::shared_ptr<const Examples> examples_;
  torch::Tensor inputs_, targets_;  // as large as the largest batch so far
};

/// A rank's endless stream of training batches.
class TrainingBatches {
 public:
  /// `augmentation_seed`: of the rank's own stream.
  TrainingBatches(const DataSet& data, Sampler sampler, bool augmented, std::uint64_t augmentation_seed)
      : buffer_(data.shape, data.train),
        sampler_(std::move(sampler)),
        augmented_(augmented),
        random_(augmentation_seed) {}
  std::int64_t iterations_per_epoch() const { return sampler_.iterations_per_epoch(); }
  Batch next() { return batch(sampler_.next()); }
  /// The training examples with these indices, whoever's share they are in. Valid until the next call.
  Batch batch(std::span<const std::uint32_t> indices) {
    return buffer_.batch(indices, augmented_ ? &random_ : nullptr);
  }

  /// Goes on after as many batches as this rank has had.
  void skip(std::int64_t batches) { sampler_.skip(batches); }
  /// What augmentation draws next.
  void state(Archive& archive) { random_state(archive, random_); }

 private:
  ExampleBuffer buffer_;
  Sampler sampler_;
  bool augmented_;
  Random random_;
};

/// What models are tested on: `size` examples, of which any range is a batch.
struct TestSet {
  std::size_t size = 0;
  std::function<Batch(std::size_t first, std::size_t count)> batch;
  std::size_t batch_size = 200;  ///< examples that are scored at a time
};
/// The test examples of a data set. Few large ones are scored at a time, so that inputs and logits stay small beside
/// the model.
TestSet test_set(const DataSet& data);

}  // namespace hearsay
