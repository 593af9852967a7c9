#include "runtime/data/image_batches.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearsay {
namespace {

constexpr int padding = 4;

/// The normalised value of every byte, for one channel.
using LookUp = std::array<float, 256>;

std::vector<LookUp> look_up_tables(std::span<const float> mean, std::span<const float> stddev) {
  std::vector<LookUp> tables(mean.size());
  for (std::size_t c = 0; c < tables.size(); ++c)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[c][byte] = (static_cast<float>(byte) / 255.0F - mean[c]) / stddev[c];
  return tables;
}

/// The window that is cut out of the padded image, relative to the unpadded one.
struct Window {
  int down = 0, right = 0;
  bool mirrored = false;
};

Window draw_window(Augmentation augmentation, Random& random) {
  if (augmentation == Augmentation::none) return {};
  const int down = static_cast<int>(random.below(2 * padding + 1)) - padding;
  const int right = static_cast<int>(random.below(2 * padding + 1)) - padding;
  return {down, right, random.below(2) == 1};
}

/// One channel of one image through the window.
void copy_plane(const std::uint8_t* plane, int height, int width, const Window& window, const LookUp& table,
                float* out) {
  for (int row = 0; row < height; ++row, out += width) {
    const int from = row + window.down;
    const int first = std::clamp(-window.right, 0, width), last = std::clamp(width - window.right, 0, width);
    if (from < 0 || from >= height) {
      std::fill_n(out, width, table[0]);
      continue;
    }
    const std::uint8_t* const source = plane + static_cast<std::ptrdiff_t>(from) * width;
    std::fill(out, out + first, table[0]);
    for (int column = first; column < last; ++column) out[column] = table[source[column + window.right]];
    std::fill(out + last, out + width, table[0]);
    if (window.mirrored) std::reverse(out, out + width);
  }
}

void check(const ImageSet& images, std::span<const float> mean, std::span<const float> stddev, std::size_t indices,
           std::size_t out) {
  const auto channels = static_cast<std::size_t>(images.channels);
  if (mean.size() != channels || stddev.size() != channels)
    throw std::logic_error("fill: one mean and one standard deviation a channel are needed");
  if (out != indices * images.image_size()) throw std::logic_error("fill: the output does not have the batch's size");
}

}  // namespace

Augmentation read_augmentation(Config& config) {
  const auto name = config.choice("augmentation", "none", {"none", "pad_crop_flip"},
                                  "pad_crop_flip: pad by 4 pixels, random crop, mirror with probability 1/2");
  return name == "none" ? Augmentation::none : Augmentation::pad_crop_flip;
}

void fill(const ImageSet& images, std::span<const float> mean, std::span<const float> stddev,
          std::span<const std::uint32_t> indices, std::span<float> out, const Augmentation& augmentation,
          Random& random) {
  check(images, mean, stddev, indices.size(), out.size());
  const auto tables = look_up_tables(mean, stddev);
  const std::size_t plane_size = static_cast<std::size_t>(images.height) * images.width;
  float* target = out.data();
  for (const std::uint32_t index : indices) {
    if (index >= images.size()) throw std::logic_error("fill: there is no image " + std::to_string(index));
    const Window window = draw_window(augmentation, random);
    const std::uint8_t* source = images.pixels.data() + index * images.image_size();
    for (const LookUp& table : tables) {
      copy_plane(source, images.height, images.width, window, table, target);
      source += plane_size;
      target += plane_size;
    }
  }
}

}  // namespace hearsay
