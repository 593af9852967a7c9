#pragma once
// Pictures in files: PNG by libpng, JPEG by libjpeg-turbo.
#include <cstdint>
#include <filesystem>
#include <vector>

namespace hearsay {

/// Red, green and blue of every pixel, row by row: (height, width, 3).
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels{};
};

/// The picture in a PNG or JPEG file, whatever it is called; grey becomes colour, and what can be seen through lies on
/// black. Throws DataError, naming the file, if it is neither, damaged, of more than 10⁸ pixels,
/// or of more than its bytes can hold.
Picture read_picture(const std::filesystem::path& file);

/// Whether `resized` makes at most 10⁸ pixels of it: one that is a line becomes as long a band.
bool can_be_resized(const Picture& picture, int side);

/// The picture's shorter side becomes `side` pixels: every new pixel is a mean of old ones weighted by their distance,
/// over the width of a new pixel, or of an old one if that is wider (the triangle filter of Pillow's `BILINEAR`).
Picture resized(const Picture& picture, int side);

}  // namespace hearsay
