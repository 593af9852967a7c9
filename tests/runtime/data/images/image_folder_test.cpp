// Folders of pictures: every picture is what was written, classes are folders, windows lie where they should, and
// what is damaged is refused.
#include <doctest/doctest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cmath>

#include "apps/datasets/pictures.hpp"
#include "base/error.hpp"
#include "tests/runtime/data/load.hpp"
#include "tests/runtime/data/temporary_files.hpp"

namespace image_folder_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

namespace fs = std::filesystem;

/// Red grows from left to right, green from top to bottom, blue is the picture's own.
Picture gradient(int width, int height, int blue) {
  Picture picture{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const int value : {x * 255 / std::max(1, width - 1), y * 255 / std::max(1, height - 1), blue})
        picture.pixels.push_back(static_cast<std::uint8_t>(value));
  return picture;
}

Bytes png(const Picture& picture, png_uint_32 format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = format;
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr) != 0);
  Bytes bytes(size);
  REQUIRE(png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr) != 0);
  bytes.resize(size);
  return bytes;
}

Bytes jpeg(const Picture& picture) {
  tjhandle encoder = tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(encoder, picture.pixels.data(), picture.width, 0, picture.height, TJPF_RGB, &made, &size,
                      TJSAMP_444, 95, 0) == 0);
  Bytes bytes(made, made + size);
  tjFree(made);
  tjDestroy(encoder);
  return bytes;
}

int largest_difference(const Picture& a, const Picture& b) {
  REQUIRE(a.pixels.size() == b.pixels.size());
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

struct Pictures {
  TemporaryFolder folder;
  void write(const fs::path& file, const Bytes& bytes) const {
    fs::create_directories((folder.path() / file).parent_path());
    folder.write(file.string(), bytes);
  }
  DataSet load(const std::string& more = "") const {
    return load_set("image_folder", "{path: " + folder.path().string() + more + "}");
  }
  std::string error(const std::string& more = "") const {
    return message_of<DataError>([&] { static_cast<void>(load(more)); });
  }
};

std::vector<float> values(const DataSet& data, const Examples& examples, std::uint32_t index, std::int64_t& label,
                          Random* random = nullptr) {
  std::vector<float> pixels(data.shape.inputs.count());
  examples.batch(std::vector{index}, std::span(pixels), std::span(&label, 1), random);
  return pixels;
}

/// The pixel's value that an input was made of.
double pixel(const DataSet& data, const std::vector<float>& input, std::size_t c, std::size_t y, std::size_t x) {
  constexpr double mean[]{0.485, 0.456, 0.406}, deviation[]{0.229, 0.224, 0.225};
  const auto side = static_cast<std::size_t>(data.shape.inputs.sizes.back());
  return 255.0 * (input[(c * side + y) * side + x] * deviation[c] + mean[c]);
}

}  // namespace

TEST_CASE("pictures: a PNG comes back to the bit, a JPEG nearly; grey is colour, and what is clear is black") {
  const TemporaryFolder folder;
  const Picture picture = gradient(33, 20, 77);
  const Picture exact = read_picture(folder.write("a.png", png(picture)));
  CHECK(exact.width == 33);
  CHECK(exact.height == 20);
  CHECK(exact.pixels == picture.pixels);
  CHECK(largest_difference(read_picture(folder.write("misnamed.png", jpeg(picture))), picture) < 12);
  const Picture grey{2, 1, {10, 200}};
  CHECK(read_picture(folder.write("grey.png", png(grey, PNG_FORMAT_GRAY))).pixels == Bytes{10, 10, 10, 200, 200, 200});
  const Picture clear{2, 1, {255, 255, 255, 0, 9, 8, 7, 255}};
  CHECK(read_picture(folder.write("clear.png", png(clear, PNG_FORMAT_RGBA))).pixels == Bytes{0, 0, 0, 9, 8, 7});
}

TEST_CASE("pictures: resizing keeps an even one even, a gradient straight, and the shorter side's length") {
  for (const auto& [width, height] : {std::pair{40, 20}, {20, 40}, {7, 9}, {300, 200}}) {
    CAPTURE(width);
    const Picture even{width, height, Bytes(static_cast<std::size_t>(width * height * 3), 123)};
    const Picture small = resized(even, 16);
    CHECK(std::min(small.width, small.height) == 16);
    CHECK(std::abs(small.width * height - small.height * width) <= std::max(width, height));
    CHECK(std::ranges::all_of(small.pixels, [](std::uint8_t value) { return value == 123; }));
  }
  const Picture same = gradient(16, 16, 3);
  CHECK(resized(same, 16).pixels == same.pixels);
  // Halved, new pixels lie between old ones: away from the edges red goes on as it did.
  const Picture half = resized(gradient(64, 64, 3), 32);
  for (int x = 2; x < 30; ++x)
    CHECK(std::abs(half.pixels[static_cast<std::size_t>(x) * 3] - (2 * x + 0.5) * 255 / 63) < 1.5);
}

TEST_CASE("pictures: what is damaged is refused, with the file's name") {
  const TemporaryFolder folder;
  const Bytes whole_png = png(gradient(60, 40, 5)), whole_jpeg = jpeg(gradient(60, 40, 5));
  const auto refused = [&](const Bytes& bytes) {
    const auto file = folder.write("bad.jpg", bytes);
    const std::string message = message_of<DataError>([&] { static_cast<void>(read_picture(file)); });
    CAPTURE(message);
    CHECK(contains(message, "bad.jpg: cannot be read as a picture: "));
    CHECK(contains(message, "; mend it or take it away"));
  };
  for (const Bytes& whole : {whole_png, whole_jpeg})
    for (const std::size_t kept : {std::size_t{0}, std::size_t{4}, std::size_t{30}, whole.size() / 2})
      refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)});
  Bytes spoilt = whole_png;
  spoilt[whole_png.size() / 2] ^= 0x55;  // its checksum is wrong
  refused(spoilt);
  const std::string text = "GIF89a, or anything else";
  refused({text.begin(), text.end()});
}

TEST_CASE("image folder: a folder is a class, by name; some of each are tested on, or those in val") {
  const Pictures pictures;
  for (int i = 0; i < 4; ++i) {
    pictures.write("cat/" + std::to_string(i) + ".png", png(gradient(20, 20, 10 + i)));
    pictures.write("bird/" + std::to_string(i) + ".JPG", jpeg(gradient(20, 20, 100)));
  }
  pictures.write("bird/notes.txt", {1});
  pictures.write(".hidden/0.png", {1});
  const DataSet data = pictures.load(", side: 16, margin: 1, test_fraction: 0.25");
  REQUIRE(data.train->size() == 6);
  REQUIRE(data.test->size() == 2);
  CHECK(data.shape.inputs.sizes == std::vector<std::int64_t>{3, 16, 16});
  CHECK(data.shares.groups == std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1});
  std::int64_t label = -1;
  const auto cat = values(data, *data.test, 1, label);
  CHECK(label == 1);
  CHECK(pixel(data, cat, 2, 5, 5) == doctest::Approx(13).epsilon(0.01));
  CHECK(pixel(data, values(data, *data.train, 0, label), 2, 5, 5) == doctest::Approx(100).epsilon(0.1));
  CHECK(label == 0);

  const Pictures parted;
  for (const std::string file : {"train/a/0.png", "train/b/0.png", "val/b/0.png"})
    parted.write(file, png(gradient(20, 20, 0)));
  const DataSet two = parted.load();
  CHECK(two.train->size() == 2);
  CHECK(two.test->size() == 1);
  static_cast<void>(two.test->size());
}

TEST_CASE("image folder: windows are in the middle, or anywhere and mirrored with augmentation") {
  const Pictures pictures;
  for (const std::string file : {"a/0.png", "a/1.png", "b/0.png", "b/1.png"})
    pictures.write(file, png(gradient(80, 40, 0)));
  const DataSet data = pictures.load(", side: 20, margin: 2, test_fraction: 0.5");  // 80 x 40 stays as it is
  std::int64_t label = 0;
  const auto middle = values(data, *data.train, 0, label);
  CHECK(pixel(data, middle, 0, 0, 0) == doctest::Approx(std::floor(30 * 255 / 79.0)).epsilon(1e-3));
  CHECK(pixel(data, middle, 1, 0, 0) == doctest::Approx(std::floor(10 * 255 / 39.0)).epsilon(1e-3));
  Random random(1);
  int mirrored = 0;
  double lowest = 255, highest = 0;
  for (int i = 0; i < 200; ++i) {
    const auto input = values(data, *data.train, 0, label, &random);
    const double left = pixel(data, input, 0, 0, 0), right = pixel(data, input, 0, 0, 19);
    mirrored += left > right ? 1 : 0;
    CHECK(std::abs(std::abs(left - right) - 19 * 255 / 79.0) < 2);
    lowest = std::min({lowest, left, right}), highest = std::max({highest, left, right});
  }
  CHECK(mirrored > 70);
  CHECK(mirrored < 130);
  CHECK(lowest < 5);
  CHECK(highest > 250);
}

TEST_CASE("pictures: one that says it has more pixels than its bytes can hold is refused") {
  const TemporaryFolder folder;
  Bytes large = png(gradient(1, 1, 5));
  large[18] = large[22] = 0x1f;  // 7937 x 7937
  const auto message = message_of<DataError>([&] { static_cast<void>(read_picture(folder.write("a.png", large))); });
  CHECK(contains(message, "a.png: cannot be read as a picture: "));
  const auto sparse = folder.write("sparse.png", png(gradient(1, 1, 5)));
  std::filesystem::resize_file(sparse, std::size_t{1} << 40);
  CHECK(contains(message_of<DataError>([&] { static_cast<void>(read_picture(sparse)); }), "more than 800000000 bytes"));
  CHECK(can_be_resized({100'000, 1, {}}, 16));
  CHECK_FALSE(can_be_resized({100'000, 1, {}}, 64));
}

TEST_CASE("image folder: links are counted once, and one that leads nowhere or to itself is named") {
  const Pictures pictures;
  const fs::path root = pictures.folder.path();
  for (const std::string file : {"a/0.png", "a/1.png", "b/0.png", "b/1.png"})
    pictures.write(file, png(gradient(20, 20, 0)));
  const auto size = [&] {
    const DataSet data = pictures.load(", test_fraction: 0.5");
    return data.train->size() + data.test->size();
  };
  CHECK(size() == 4);
  fs::create_symlink("0.png", root / "a/again.png");
  fs::create_directory_symlink(".", root / "a/loop");
  fs::create_directory_symlink("b", root / "c");  // a class that is another one
  CHECK(size() == 4);
  const auto refused = [&](const fs::path& link, const fs::path& target, const std::string& why) {
    CAPTURE(link);
    fs::create_symlink(target, root / link);
    CHECK(contains(pictures.error(), (root / link).string() + ": " + why));
    fs::remove(root / link);
  };
  refused("a/self.png", "self.png", "is a link that leads nowhere: Too many levels");
  refused("self", "self", "is a link that leads nowhere: Too many levels");
  refused("a/gone.png", "none.png", "is a link that leads nowhere: No such file");
  refused("b/other.png", "../a/0.png", "is a link to a picture of another class");
  refused("whole", ".", "has no picture");
  CHECK(size() == 4);
  fs::create_symlink("train", root / "train");
  CHECK(contains(pictures.error(), "train: is a link that leads nowhere"));
}

TEST_CASE("image folder: what is wrong with the folder is said") {
  const Pictures pictures;
  CHECK(contains(message_of<ConfigError>([] { load_set("image_folder", "{}"); }), "data.path is empty"));
  CHECK(contains(pictures.error(), "has 0 folders, and there must be one for each of two classes"));
  pictures.write("a/0.png", png(gradient(9, 9, 0)));
  pictures.write("b/readme.txt", {1});
  CHECK(contains(pictures.error(), "b: has no picture"));
  pictures.write("train/a/0.png", png(gradient(9, 9, 0)));
  pictures.write("train/b/0.png", png(gradient(9, 9, 0)));
  pictures.write("val/c/0.png", png(gradient(9, 9, 0)));
  CHECK(contains(pictures.error(), "val/c: is a class that "));
  CHECK(contains(message_of<DataError>([] { load_set("image_folder", "{path: /nowhere}"); }), "cannot be read"));
}

}  // namespace image_folder_test
