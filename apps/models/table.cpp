// The table of models: a new one is a file of its own, a declaration and a line here.
#include <array>
#include <string>

#include "apps/models/models.hpp"
#include "base/error.hpp"

namespace hearsay {

ModelEntry mnist_cnn_model();
ModelEntry mlp_model();
ModelEntry lenet5_model();
ModelEntry resnet20_model();
ModelEntry resnet18_model();

std::span<const ModelEntry> models() {
  static const std::array table{mnist_cnn_model(), mlp_model(), lenet5_model(), resnet20_model(), resnet18_model()};
  return table;
}

namespace {

std::string size_text(int channels, int height, int width) {
  return (channels == 0 ? "any number of" : std::to_string(channels)) + " channel" + (channels == 1 ? "" : "s") +
         " of " + std::to_string(height) + "x" + std::to_string(width);
}

}  // namespace

void require_images(const ImageSet& images, std::string_view model, int channels, int height, int width) {
  const bool fits = (channels == 0 || images.channels == channels) && images.height == height && images.width == width;
  if (fits) return;
  throw ConfigError("model.name: " + std::string(model) + " takes images with " + size_text(channels, height, width) +
                    ", but the data set has " + size_text(images.channels, images.height, images.width) +
                    "; choose another model or another data set (`hearsay list`)");
}

double read_dropout(Config& model) {
  return model.real("dropout", 0.5, Range::fraction_below_one(), "probability that training sets an activation to 0");
}

}  // namespace hearsay
