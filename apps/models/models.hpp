#pragma once
// The models that `model.name` chooses from. No LibTorch in this header.
#include <memory>
#include <span>

#include "base/config/table.hpp"
#include "runtime/data/examples.hpp"

namespace hearsay {

class Model;

/// A configured model before there is data.
class ModelFactory {
 public:
  virtual ~ModelFactory() = default;
  /// Initial values come from LibTorch's generator. Throws ConfigError if the model cannot take such examples.
  virtual Model make(const ExampleShape& shape) const = 0;
};

/// The Config is the section `model:`.
using ModelEntry = Entry<ModelFactory>;
/// In the order in which `hearsay list` shows them; the first is the default.
std::span<const ModelEntry> models();

/// What a network for images needs to know.
struct ImageShape {
  int channels, height, width, classes;
};
/// Throws ConfigError unless the examples are images with one class each, and have this many channels (0: any) and this
/// height and width (0: any).
ImageShape require_images(const ExampleShape& shape, std::string_view model, int channels, int height, int width);
/// Whether an image is too small for networks that begin by reducing it: less than 64 pixels high or wide.
bool is_small(const ImageShape& images);
/// Throws ConfigError unless images are so many pixels high and wide at least.
void require_side(const ImageShape& images, std::string_view model, int least);
/// What a network for text needs to know.
struct TokenShape {
  std::int64_t vocabulary, length;
};
/// Throws ConfigError unless inputs are sequences of tokens, and targets the same a token further on.
TokenShape require_tokens(const ExampleShape& shape, std::string_view model);
/// What a network that translates needs to know.
struct PairShape {
  std::int64_t vocabulary, source_length, target_length;
};
/// Throws ConfigError unless inputs are a source and a target so far, (S + T) tokens, and targets are T of the same.
PairShape require_pairs(const ExampleShape& shape, std::string_view model);
/// Throws ConfigError unless inputs are numbers.
void require_numbers(const ExampleShape& shape, std::string_view model);
/// How many outputs a model has for each target: classes, or 1 for a number.
std::int64_t outputs_of(const TensorShape& targets);

/// The key `dropout`: the probability that an activation is set to 0 in training.
double read_dropout(Config& model, double fallback = 0.5);

}  // namespace hearsay
