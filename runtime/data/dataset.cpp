#include "runtime/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "runtime/data/image_batches.hpp"

namespace hearsay {
namespace {

[[noreturn]] void refuse(const ImageData& data, const std::string& what) {
  throw DataError("data '" + data.name + "': " + what);
}

std::string image_shape(const ImageSet& set) {
  return std::to_string(set.channels) + " x " + std::to_string(set.height) + " x " + std::to_string(set.width);
}

/// `which`: "training" or "test".
void require_whole(const ImageData& data, const ImageSet& set, const std::string& which) {
  if (set.channels < 1 || set.height < 1 || set.width < 1 || set.classes < 1)
    refuse(data, which + " images of " + image_shape(set) + " pixels in " + std::to_string(set.classes) +
                     " classes: channels, height, width and classes are at least 1");
  if (set.labels.empty()) refuse(data, "the " + which + " set is empty: it has no labels");
  const std::size_t needed = set.size() * set.image_size();
  if (set.pixels.size() != needed)
    refuse(data, "the " + which + " set has " + std::to_string(set.pixels.size()) + " pixels, but its " +
                     std::to_string(set.size()) + " labels and images of " + image_shape(set) + " need " +
                     std::to_string(needed));
  const auto beyond = std::ranges::find_if(set.labels, [&](std::uint8_t label) { return label >= set.classes; });
  if (beyond != set.labels.end())
    refuse(data, "label " + std::to_string(*beyond) + " of " + which + " image " +
                     std::to_string(beyond - set.labels.begin()) + " is not below the number of classes, " +
                     std::to_string(set.classes));
}

void require_channels(const ImageData& data, const std::vector<float>& values, const std::string& which) {
  if (values.size() != static_cast<std::size_t>(data.train.channels))
    refuse(data, std::to_string(values.size()) + " values of " + which + " for " + std::to_string(data.train.channels) +
                     " channels");
}

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

ExampleShape shape_of(const ImageSet& images) {
  return {.inputs = {.sizes = {images.channels, images.height, images.width}},
          .targets = {.element = TensorShape::Element::classes, .classes = images.classes}};
}

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

void require_whole(const ImageData& data) {
  require_whole(data, data.train, "training");
  require_whole(data, data.test, "test");
  if (image_shape(data.train) != image_shape(data.test) || data.train.classes != data.test.classes)
    refuse(data, "training images of " + image_shape(data.train) + " in " + std::to_string(data.train.classes) +
                     " classes, but test images of " + image_shape(data.test) + " in " +
                     std::to_string(data.test.classes));
  require_channels(data, data.mean, "mean");
  require_channels(data, data.stddev, "stddev");
  for (const float mean : data.mean)
    if (!std::isfinite(mean)) refuse(data, "a mean is not finite: inputs would not be, either");
  for (const float stddev : data.stddev)
    if (!(std::isfinite(stddev) && stddev > 0.0F))
      refuse(data, "stddev " + std::to_string(stddev) + " of a channel: inputs are divided by it, it must be above 0");
}

}  // namespace hearsay
