#pragma once
// From indices to a batch of normalised floats.
#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "runtime/data/dataset.hpp"

namespace hearsay {

/// What is done to a training image before it is used.
enum class Augmentation {
  none,
  pad_crop_flip,  ///< 4 black pixels around it, a random window of the old size, mirrored with probability 1/2
};

/// Reads the key `augmentation` (none, pad_crop_flip; default none) of the section `data:`.
Augmentation read_augmentation(Config& config);

/// out[b, c, y, x] = (pixel/255 − mean[c]) / stddev[c] of image indices[b]; `out` is (indices.size(), C, H, W).
/// Padding is black before normalisation. `random` is drawn from only if there is something to augment: three draws an
/// image. Throws std::logic_error if a size does not fit or an index is out of range.
void fill(const ImageSet& images, std::span<const float> mean, std::span<const float> stddev,
          std::span<const std::uint32_t> indices, std::span<float> out, const Augmentation& augmentation,
          Random& random);

}  // namespace hearsay
