#pragma once
// Images as tensors, batch by batch, in buffers that are used again.
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/image_batches.hpp"
#include "runtime/data/sampler.hpp"
#include "runtime/training/model/model.hpp"

namespace hearsay {

/// What is to be said of a loss that is not a number: throws DataError if it cannot be one, since inputs of the batch
/// are not finite either.
void require_finite_inputs(const Batch& batch, int rank, std::int64_t iteration);

/// Room for a batch of images, filled from indices.
class ImageBuffer {
 public:
  /// `images` must outlive the buffer, like `data`.
  ImageBuffer(const ImageData& data, const ImageSet& images) : data_(data), images_(images) {}
  /// Normalised float images (B, C, H, W) and int64 labels (B). Valid until the next call.
  Batch fill(std::span<const std::uint32_t> indices, Augmentation augmentation, Random& random);

 private:
  const ImageData& data_;
  const ImageSet& images_;
  torch::Tensor inputs_, targets_;  // as large as the largest batch so far
};

/// A rank's endless stream of training batches.
class TrainingBatches {
 public:
  /// `augmentation_seed`: of the rank's own stream.
  TrainingBatches(const ImageData& data, Sampler sampler, Augmentation augmentation, std::uint64_t augmentation_seed)
      : buffer_(data, data.train),
        sampler_(std::move(sampler)),
        augmentation_(augmentation),
        random_(augmentation_seed) {}
  std::int64_t iterations_per_epoch() const { return sampler_.iterations_per_epoch(); }
  Batch next() { return buffer_.fill(sampler_.next(), augmentation_, random_); }

 private:
  ImageBuffer buffer_;
  Sampler sampler_;
  Augmentation augmentation_;
  Random random_;
};

/// What models are tested on: `size` examples, of which any range is a batch.
struct TestSet {
  std::size_t size = 0;
  std::function<Batch(std::size_t first, std::size_t count)> batch;
};
/// The test images of `data`, which must outlive the set.
TestSet test_images(const ImageData& data);

}  // namespace hearsay
