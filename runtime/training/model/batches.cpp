#include "runtime/training/model/batches.hpp"

#include <memory>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace hearsay {

void require_finite_inputs(const Batch& batch, int rank, std::int64_t iteration) {
  const auto wrong = batch.inputs.numel() - batch.inputs.isfinite().sum().item<std::int64_t>();
  if (wrong == 0) return;
  throw DataError("rank " + std::to_string(rank) + ", iteration " + std::to_string(iteration) + ": " +
                  std::to_string(wrong) + " of " + std::to_string(batch.inputs.numel()) +
                  " inputs of the batch are NaN or infinite, so that its loss is, too; mend the data, or the mean and "
                  "stddev that normalise them");
}

Batch ImageBuffer::fill(std::span<const std::uint32_t> indices, Augmentation augmentation, Random& random) {
  const auto count = static_cast<std::int64_t>(indices.size());
  if (!inputs_.defined() || inputs_.size(0) < count) {
    inputs_ = torch::empty({count, images_.channels, images_.height, images_.width}, torch::kFloat32);
    targets_ = torch::empty({count}, torch::kInt64);
  }
  hearsay::fill(images_, data_.mean, data_.stddev, indices,
                {inputs_.data_ptr<float>(), indices.size() * images_.image_size()}, augmentation, random);
  auto* const labels = targets_.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < indices.size(); ++i) labels[i] = images_.labels[indices[i]];
  return {inputs_.narrow(0, 0, count), targets_.narrow(0, 0, count)};
}

TestSet test_images(const ImageData& data) {
  const auto buffer = std::make_shared<ImageBuffer>(data, data.test);
  return {.size = data.test.size(), .batch = [buffer](std::size_t first, std::size_t count) {
            std::vector<std::uint32_t> indices(count);
            std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
            Random unused(0);
            return buffer->fill(indices, Augmentation::none, unused);
          }};
}

}  // namespace hearsay
