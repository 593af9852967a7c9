#include "runtime/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"

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

}  // namespace

ExampleShape shape_of(const ImageSet& images) {
  return {.inputs = {.sizes = {images.channels, images.height, images.width}},
          .targets = {.element = TensorShape::Element::classes, .classes = images.classes}};
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
