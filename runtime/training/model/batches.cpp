#include "runtime/training/model/batches.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

bool has_classes(const TensorShape& shape) { return shape.element == TensorShape::Element::classes; }

torch::Tensor room(const TensorShape& shape, std::int64_t count) {
  std::vector<std::int64_t> sizes{count};
  sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
  return torch::empty(sizes, has_classes(shape) ? torch::kInt64 : torch::kFloat32);
}

/// The values of a contiguous tensor.
Values memory_of_batches(const torch::Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (tensor.is_floating_point()) return std::span(tensor.data_ptr<float>(), count);
  return std::span(tensor.data_ptr<std::int64_t>(), count);
}

/// Without the last targets and inputs that no example has.
Batch cut(const Batch& padded) {
  const std::int64_t length = padded.targets.size(1);
  const auto used = padded.targets.ge(0).any(0).nonzero();
  const std::int64_t kept = used.numel() > 0 ? used.max().item<std::int64_t>() + 1 : 1;
  return {padded.inputs.narrow(1, 0, padded.inputs.size(1) - length + kept), padded.targets.narrow(1, 0, kept)};
}

}  // namespace

void require_finite_inputs(const Batch& batch, int rank, std::int64_t iteration) {
  const auto wrong = batch.inputs.numel() - batch.inputs.isfinite().sum().item<std::int64_t>();
  if (wrong == 0) return;
  throw DataError("rank " + std::to_string(rank) + ", iteration " + std::to_string(iteration) + ": " +
                  std::to_string(wrong) + " of " + std::to_string(batch.inputs.numel()) +
                  " inputs of the batch are NaN or infinite, so that its loss is, too; mend the data, or the mean and "
                  "stddev that normalise them");
}

Batch ExampleBuffer::batch(std::span<const std::uint32_t> indices, Random* augmentation) {
  const auto count = static_cast<std::int64_t>(indices.size());
  if (!inputs_.defined() || inputs_.size(0) < count) {
    inputs_ = room(shape_.inputs, count);
    targets_ = room(shape_.targets, count);
  }
  const Batch batch{inputs_.narrow(0, 0, count), targets_.narrow(0, 0, count)};
  examples_->batch(indices, memory_of_batches(batch.inputs), memory_of_batches(batch.targets), augmentation);
  return shape_.padded ? cut(batch) : batch;
}

TestSet test_set(const DataSet& data) {
  constexpr std::size_t most_examples = 200, most_values = std::size_t{1} << 22;
  const std::size_t logits =
      data.shape.targets.count() * static_cast<std::size_t>(std::max<std::int64_t>(1, data.shape.targets.classes));
  const std::size_t values = std::max(data.shape.inputs.count(), logits);
  const auto buffer = std::make_shared<ExampleBuffer>(data.shape, data.test);
  return {.size = data.test->size(),
          .batch =
              [buffer](std::size_t first, std::size_t count) {
                std::vector<std::uint32_t> indices(count);
                std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
                return buffer->batch(indices, nullptr);
              },
          .batch_size = std::clamp<std::size_t>(most_values / std::max<std::size_t>(1, values), 1, most_examples)};
}

}  // namespace hearsay
