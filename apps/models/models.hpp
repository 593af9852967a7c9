#pragma once
// The models that `model.name` chooses from. No LibTorch in this header.
#include <memory>
#include <span>

#include "base/config/table.hpp"
#include "runtime/data/dataset.hpp"

namespace hearsay {

class Model;

/// A configured model before there is data.
class ModelFactory {
 public:
  virtual ~ModelFactory() = default;
  /// Initial values come from LibTorch's generator. Throws ConfigError if the model cannot take such images.
  virtual Model make(const ImageSet& images) const = 0;
};

/// The Config is the section `model:`.
using ModelEntry = Entry<ModelFactory>;
/// In the order in which `hearsay list` shows them; the first is the default.
std::span<const ModelEntry> models();

/// Throws ConfigError unless `images` have this many channels (0: any) and this height and width.
void require_images(const ImageSet& images, std::string_view model, int channels, int height, int width);

/// The key `dropout`: the probability that an activation is set to 0 in training.
double read_dropout(Config& model);

}  // namespace hearsay
