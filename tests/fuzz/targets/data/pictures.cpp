// A picture: a DataError, or as many pixels as its size says, which can be resized.
#include "apps/datasets/pictures.hpp"
#include "base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace hearsay::fuzz {

/// One pixel each.
std::vector<std::string> seeds() {
  constexpr unsigned char png[]{0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                                0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
                                0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08,
                                0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0x18, 0xdd, 0x8d,
                                0xb0, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  constexpr unsigned char jpeg[]{0xff, 0xd8, 0xff, 0xdb, 0x00, 0x43, 0x00};
  constexpr unsigned char rest[]{0xff, 0xc0, 0x00, 0x0b, 0x08, 0x00, 0x01, 0x00, 0x01, 0x01, 0x01, 0x11, 0x00, 0xff,
                                 0xc4, 0x00, 0x14, 0x00, 0x01, 0,    0,    0,    0,    0,    0,    0,    0,    0,
                                 0,    0,    0,    0,    0,    0,    0x03, 0xff, 0xc4, 0x00, 0x14, 0x10, 0x01, 0,
                                 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
                                 0x00, 0xff, 0xda, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3f, 0x00, 0x77, 0xff, 0xd9};
  const auto text = [](const auto& bytes) { return std::string(std::begin(bytes), std::end(bytes)); };
  return {text(png), text(jpeg) + std::string(64, '\1') + text(rest)};
}

std::vector<std::string> words() {
  return {"IHDR", "IDAT", "PLTE", "tRNS", "\xff\xd8", "\xff\xc2", "\xff\xda", "\xff\xd9", "\x7f\xff\xff\xff"};
}

}  // namespace hearsay::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearsay;
  static fuzz::MemoryFile file;
  file.fill({data, size});
  try {
    const Picture picture = read_picture(file.path());
    fuzz::require(picture.pixels.size() == static_cast<std::size_t>(picture.width) * picture.height * 3, "the size");
    if (picture.pixels.size() > 300'000) return 0;
    const Picture small = resized(picture, 8);
    fuzz::require(small.pixels.size() == static_cast<std::size_t>(small.width) * small.height * 3, "the new size");
  } catch (const DataError&) {
  }
  return 0;
}
