#include "apps/datasets/pictures.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "apps/datasets/file_reader.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

constexpr int channels = 3;
constexpr std::int64_t most_pixels = 100'000'000;
constexpr std::size_t most_bytes = 8 * most_pixels;  // 16 bits for each of four channels, and not packed at all

[[noreturn]] void damaged(const fs::path& file, const std::string& why) {
  throw DataError(file.string() + ": cannot be read as a picture: " + why + "; mend it or take it away");
}

/// `per_byte`: pixels that a byte of the file can hold, at most. A file cannot have more, whatever it says.
Picture with_room(const fs::path& file, const Bytes& bytes, std::int64_t width, std::int64_t height,
                  std::int64_t per_byte) {
  const std::string said = std::to_string(width) + "x" + std::to_string(height) + " pixels";
  if (width < 1 || height < 1 || width > most_pixels || height > most_pixels / width) damaged(file, "it has " + said);
  if (width * height > per_byte * static_cast<std::int64_t>(bytes.size()))
    damaged(file, "it says that it has " + said + ", and has only " + std::to_string(bytes.size()) + " bytes");
  return {static_cast<int>(width), static_cast<int>(height),
          Bytes(static_cast<std::size_t>(width * height * channels))};
}

Picture read_png(const fs::path& file, const Bytes& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> ended(&image, png_image_free);
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) damaged(file, image.message);
  image.format = PNG_FORMAT_RGB;
  constexpr std::int64_t per_byte = 1032 * 8;  // of deflate, and of a bit a pixel
  Picture picture = with_room(file, bytes, image.width, image.height, per_byte);
  const png_color black{};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0 || PNG_IMAGE_FAILED(image))
    damaged(file, image.message);
  return picture;
}

Picture read_jpeg(const fs::path& file, const Bytes& bytes) {
  const std::unique_ptr<void, decltype(&tjDestroy)> decoder(tjInitDecompress(), tjDestroy);
  if (!decoder) throw std::bad_alloc();
  int width = 0, height = 0, sampling = 0, colours = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(decoder.get(), bytes.data(), size, &width, &height, &sampling, &colours) != 0)
    damaged(file, tjGetErrorStr2(decoder.get()));
  constexpr std::int64_t per_byte = 4096;  // a bit a block of 8x8, and eight times as many for arithmetic coding
  Picture picture = with_room(file, bytes, width, height, per_byte);
  // It returns an error for damage that it has painted over, too.
  if (tjDecompress2(decoder.get(), bytes.data(), size, picture.pixels.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0)
    damaged(file, tjGetErrorStr2(decoder.get()));
  return picture;
}

/// Which old pixels make a new one, and how much each counts.
struct Part {
  int first;
  std::vector<float> weights;  // add up to 1
};

std::vector<Part> parts(int from, int to) {
  const double scale = static_cast<double>(from) / to, reach = std::max(1.0, scale);
  std::vector<Part> all;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5)),
              last = std::min(from, static_cast<int>(centre + reach + 0.5));
    Part part{first, {}};
    double sum = 0.0;
    for (int j = first; j < last; ++j) {
      part.weights.push_back(static_cast<float>(std::max(0.0, 1.0 - std::abs(j + 0.5 - centre) / reach)));
      sum += part.weights.back();
    }
    for (float& weight : part.weights) weight /= static_cast<float>(sum);
    all.push_back(std::move(part));
  }
  return all;
}

/// Lines of `length` pixels, `stride` numbers from one to the next, `count` of them `step` numbers apart.
std::vector<float> filtered(const std::vector<float>& from, const std::vector<Part>& wide, std::size_t lines,
                            std::size_t line, std::size_t pixel, std::size_t new_line, std::size_t new_pixel) {
  std::vector<float> made(lines * wide.size() * channels, 0.0F);
  for (std::size_t l = 0; l < lines; ++l)
    for (std::size_t i = 0; i < wide.size(); ++i)
      for (std::size_t j = 0; j < wide[i].weights.size(); ++j)
        for (std::size_t c = 0; c < channels; ++c)
          made[l * new_line + i * new_pixel + c] +=
              wide[i].weights[j] * from[l * line + (static_cast<std::size_t>(wide[i].first) + j) * pixel + c];
  return made;
}

}  // namespace

Picture read_picture(const fs::path& file) {
  const Bytes bytes = read_whole_file(file, most_bytes, "no picture that is taken has as many; take it away");
  if (bytes.size() > 3 && bytes[0] == 0xff && bytes[1] == 0xd8) return read_jpeg(file, bytes);
  if (bytes.size() > 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return read_png(file, bytes);
  damaged(file, bytes.empty() ? "it is empty" : "it is neither PNG nor JPEG");
}

bool can_be_resized(const Picture& picture, int side) {
  const double longer = std::max(picture.width, picture.height), shorter = std::min(picture.width, picture.height);
  return static_cast<double>(side) * side * longer / shorter <= static_cast<double>(most_pixels);
}

Picture resized(const Picture& picture, int side) {
  const double scale = static_cast<double>(side) / std::min(picture.width, picture.height);
  const auto scaled = [&](int length) { return std::max(side, static_cast<int>(std::lround(length * scale))); };
  Picture made{scaled(picture.width), scaled(picture.height), {}};
  const auto old_width = static_cast<std::size_t>(picture.width), width = static_cast<std::size_t>(made.width);
  std::vector<float> values(picture.pixels.begin(), picture.pixels.end());
  values = filtered(values, parts(picture.width, made.width), static_cast<std::size_t>(picture.height),
                    old_width * channels, channels, width * channels, channels);
  values = filtered(values, parts(picture.height, made.height), width, channels, width * channels, channels,
                    width * channels);
  for (const float value : values)
    made.pixels.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
  return made;
}

}  // namespace hearsay
