// Images as examples: what dataset.hpp promises.
#include <memory>
#include <stdexcept>
#include <utility>

#include "runtime/data/dataset.hpp"
#include "runtime/data/image_batches.hpp"

namespace hearsay {
namespace {

class Images final : public Examples {
 public:
  Images(std::shared_ptr<const ImageData> data, const ImageSet& set) : data_(std::move(data)), set_(set) {}
  std::size_t size() const override { return set_.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets,
             Random* augmentation) const override {
    Random unused(0);
    fill(set_, data_->mean, data_->stddev, indices, std::get<std::span<float>>(inputs),
         augmentation != nullptr ? Augmentation::pad_crop_flip : Augmentation::none,
         augmentation != nullptr ? *augmentation : unused);
    const auto labels = std::get<std::span<std::int64_t>>(targets);
    if (labels.size() != indices.size()) throw std::logic_error("images have one label each");
    for (std::size_t i = 0; i < indices.size(); ++i) labels[i] = set_.labels[indices[i]];
  }
  const ImageData& data() const { return *data_; }

 private:
  std::shared_ptr<const ImageData> data_;
  const ImageSet& set_;  // of data_
};

}  // namespace

DataSet image_classification(ImageData data) {
  constexpr int many_classes = 10;
  require_whole(data);
  const auto images = std::make_shared<const ImageData>(std::move(data));
  const auto& labels = images->train.labels;
  std::vector<Metric> metrics{accuracy_metric()};
  if (images->train.classes > many_classes) metrics.push_back(top5_accuracy_metric());
  return {.name = images->name,
          .shape = shape_of(images->train),
          .train = std::make_shared<Images>(images, images->train),
          .test = std::make_shared<Images>(images, images->test),
          .shares = {.size = labels.size(),
                     .groups = {labels.begin(), labels.end()},
                     .count = static_cast<std::uint32_t>(images->train.classes)},
          .metrics = std::move(metrics),
          .augmentable = images->augmentable};
}

const ImageData& images_of(const DataSet& data) {
  const auto* const images = dynamic_cast<const Images*>(data.train.get());
  if (images == nullptr) throw std::logic_error("the data set '" + data.name + "' has no images");
  return images->data();
}

}  // namespace hearsay
