// The table of models: a new one is a file of its own, a declaration and a line here.
#include <algorithm>
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
ModelEntry resnet50_model();
ModelEntry vgg16_model();
ModelEntry alexnet_model();
ModelEntry transformer_model();
ModelEntry lstm_model();
ModelEntry seq2seq_model();
ModelEntry seq2seq_transformer_model();
ModelEntry torchscript_model();

std::span<const ModelEntry> models() {
  static const std::array table{mnist_cnn_model(),   mlp_model(),      lenet5_model(),  resnet20_model(),
                                resnet18_model(),    resnet50_model(), vgg16_model(),   alexnet_model(),
                                transformer_model(), lstm_model(),     seq2seq_model(), seq2seq_transformer_model(),
                                torchscript_model()};
  return table;
}

namespace {

constexpr std::string_view another = "; choose another model or another data set (`hearsay list`)";

/// Heights and widths of 0: any.
std::string size_text(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return (channels == 0 ? "any number of" : std::to_string(channels)) + " channel" + (channels == 1 ? "" : "s") +
         " of " + (height == 0 ? "any size" : std::to_string(height) + "x" + std::to_string(width));
}

bool is_image(const TensorShape& inputs) {
  return inputs.element == TensorShape::Element::numbers && inputs.sizes.size() == 3;
}

/// "1 channel of 28x28", "sequences of 64 tokens out of 65", "4 numbers an example".
std::string description(const ExampleShape& shape) {
  const auto& sizes = shape.inputs.sizes;
  if (is_image(shape.inputs)) {
    const bool labelled = shape.targets.element == TensorShape::Element::classes;
    return size_text(sizes[0], sizes[1], sizes[2]) + (labelled ? "" : " with numbers for targets");
  }
  if (shape.inputs.element == TensorShape::Element::classes)
    return "sequences of " + std::to_string(shape.inputs.count()) + " tokens out of " +
           std::to_string(shape.inputs.classes);
  return std::to_string(shape.inputs.count()) + " numbers an example";
}

}  // namespace

ImageShape require_images(const ExampleShape& shape, std::string_view model, int channels, int height, int width) {
  const auto& sizes = shape.inputs.sizes;
  const bool images =
      is_image(shape.inputs) && shape.targets.element == TensorShape::Element::classes && shape.targets.sizes.empty();
  const bool fits = images && (channels == 0 || sizes[0] == channels) && (height == 0 || sizes[1] == height) &&
                    (width == 0 || sizes[2] == width);
  if (fits)
    return {static_cast<int>(sizes[0]), static_cast<int>(sizes[1]), static_cast<int>(sizes[2]),
            static_cast<int>(shape.targets.classes)};
  throw ConfigError("model.name: " + std::string(model) + " takes images with " + size_text(channels, height, width) +
                    ", but the data set has " + description(shape) + std::string(another));
}

bool is_small(const ImageShape& images) {
  constexpr int least = 64;
  return images.height < least || images.width < least;
}

void require_side(const ImageShape& images, std::string_view model, int least) {
  if (images.height >= least && images.width >= least) return;
  throw ConfigError("model.name: " + std::string(model) + " takes images of at least " + std::to_string(least) + "x" +
                    std::to_string(least) + " pixels, but the data set has " + std::to_string(images.height) + "x" +
                    std::to_string(images.width) + std::string(another));
}

TokenShape require_tokens(const ExampleShape& shape, std::string_view model) {
  const TensorShape& inputs = shape.inputs;
  if (inputs.element == TensorShape::Element::classes && inputs.sizes.size() == 1 && shape.targets == inputs)
    return {.vocabulary = inputs.classes, .length = inputs.sizes.front()};
  throw ConfigError("model.name: " + std::string(model) +
                    " takes sequences of tokens and foretells the next one, but "
                    "the data set has " +
                    description(shape) + std::string(another));
}

PairShape require_pairs(const ExampleShape& shape, std::string_view model) {
  const auto &in = shape.inputs, &out = shape.targets;
  const auto tokens = TensorShape::Element::classes;
  const bool fits = in.element == tokens && out.element == tokens && in.classes == out.classes &&
                    in.sizes.size() == 1 && out.sizes.size() == 1 && in.sizes.front() > out.sizes.front();
  if (fits)
    return {.vocabulary = in.classes,
            .source_length = in.sizes.front() - out.sizes.front(),
            .target_length = out.sizes.front()};
  throw ConfigError("model.name: " + std::string(model) +
                    " takes a sequence of tokens and another one so far, but the data set has " + description(shape) +
                    std::string(another));
}

void require_numbers(const ExampleShape& shape, std::string_view model) {
  if (shape.inputs.element == TensorShape::Element::numbers) return;
  throw ConfigError("model.name: " + std::string(model) + " takes numbers or pixels, but the data set has " +
                    description(shape) + std::string(another));
}

std::int64_t outputs_of(const TensorShape& targets) { return std::max<std::int64_t>(1, targets.classes); }

double read_dropout(Config& model, double fallback) {
  return model.real("dropout", fallback, Range::fraction_below_one(),
                    "probability that training sets an activation to 0");
}

}  // namespace hearsay
