// image_folder: folders of pictures, PNG and JPEG, one folder a class, as torchvision's ImageFolder reads them.
//   value[c, y, x] = (pixel/255 − mean[c])/deviation[c] of a window of side × side pixels
// The picture's shorter side is made `side · margin` pixels long; the window lies in its middle, or with augmentation
// anywhere in it, mirrored half of the time.
//   PATH/train/CLASS/…, PATH/val/CLASS/…   or PATH/CLASS/…, of which every 1/test_fraction-th of a class is tested on
// Classes are numbered by the names of their folders. Means and deviations are ImageNet's, as is usual.
// Cost: no messages; a rank keeps the files' names (about 100 bytes a picture); a picture is read and unpacked whenever
// it is wanted: about 5 ms for 500 × 400 pixels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/folders.hpp"
#include "apps/datasets/pictures.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t channels = 3;
constexpr std::array<float, channels> mean{0.485F, 0.456F, 0.406F}, deviation{0.229F, 0.224F, 0.225F};

struct File {
  fs::path path;
  std::uint32_t label;
};

std::vector<FolderEntry> folders_in(const fs::path& folder) {
  std::vector<FolderEntry> found = entries_of(folder);
  std::erase_if(found, [](const FolderEntry& entry) { return !entry.is_folder; });
  return found;
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

bool is_picture(const fs::path& file) {
  std::string ending = file.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

/// How pictures become inputs.
struct Window {
  int side;
  double margin;
};

class FolderExamples final : public Examples {
 public:
  FolderExamples(std::vector<File> files, Window window) : files_(std::move(files)), window_(window) {}
  std::size_t size() const override { return files_.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets,
             Random* augmentation) const override {
    const auto values = std::get<std::span<float>>(inputs);
    const auto labels = std::get<std::span<std::int64_t>>(targets);
    const auto side = static_cast<std::size_t>(window_.side);
    const std::size_t image = channels * side * side;
    if (labels.size() != indices.size() || values.size() != indices.size() * image)
      throw std::logic_error("image folder: the tensors do not have the batch's size");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const File& file = files_.at(indices[i]);
      labels[i] = file.label;
      cut_out(file.path, values.subspan(i * image, image), augmentation);
    }
  }

 private:
  void cut_out(const fs::path& file, std::span<float> out, Random* augmentation) const {
    const int shorter = static_cast<int>(std::lround(window_.side * window_.margin));
    const Picture read = read_picture(file);
    if (!can_be_resized(read, shorter))
      throw DataError(file.string() + ": has " + std::to_string(read.width) + "x" + std::to_string(read.height) +
                      " pixels: made " + std::to_string(shorter) + " wide, it is too long; take it away");
    const Picture picture = resized(read, shorter);
    const auto side = static_cast<std::size_t>(window_.side), width = static_cast<std::size_t>(picture.width);
    const std::size_t free_x = width - side, free_y = static_cast<std::size_t>(picture.height) - side;
    const std::size_t left = augmentation != nullptr ? augmentation->below(free_x + 1) : free_x / 2;
    const std::size_t top = augmentation != nullptr ? augmentation->below(free_y + 1) : free_y / 2;
    const bool mirrored = augmentation != nullptr && augmentation->below(2) == 1;
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x)
        for (std::size_t c = 0; c < channels; ++c) {
          const std::size_t from = left + (mirrored ? side - 1 - x : x);
          const auto pixel = static_cast<float>(picture.pixels[((top + y) * width + from) * channels + c]);
          out[(c * side + y) * side + x] = (pixel / 255.0F - mean[c]) / deviation[c];
        }
  }

  std::vector<File> files_;
  Window window_;
};

class ImageFolder final : public DatasetSource {
 public:
  explicit ImageFolder(Config& config)
      : path_(config.path("path", "", "folder with train/CLASS/… and val/CLASS/…, or with CLASS/…")),
        window_{
            .side = static_cast<int>(config.integer("side", 64, Range::between(8, 4096), "pixels of an input's side")),
            .margin = config.real("margin", 8.0 / 7.0, Range::between(1.0, 16.0),
                                  "a picture's shorter side is made so many times as long before an input is "
                                  "cut out of it; side · margin is at most 10^4 pixels")},
        test_fraction_(config.real("test_fraction", 0.1,
                                   {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                                   "part of every class to test on, where there is no folder val")) {
    config.require(window_.side * window_.margin <= 1e4, "margin", "makes a shorter side of more than 10^4 pixels");
  }

  DataSet load() const override {
    if (path_.empty())
      throw ConfigError("data.path is empty: say which folder has the pictures (`--set data.path=FOLDER`)");
    const bool two = is_folder(path_ / "train") && is_folder(path_ / "val");
    const fs::path folder = two ? path_ / "train" : path_;
    std::vector<std::string> classes;
    for (const FolderEntry& one : folders_in(folder)) classes.push_back(one.path.filename().string());
    if (classes.size() < 2)
      throw DataError(folder.string() + ": has " + std::to_string(classes.size()) +
                      " folders, and there must be one for each of two classes or more");
    std::vector<File> training, testing;
    collect(folder, classes, training, two ? nullptr : &testing);
    if (two) {
      for (const FolderEntry& one : folders_in(path_ / "val"))
        if (std::ranges::find(classes, one.path.filename().string()) == classes.end())
          throw DataError(one.path.string() + ": is a class that " + folder.string() + " does not have");
      collect(path_ / "val", classes, testing, nullptr);
    }
    return data_set(std::move(training), std::move(testing), static_cast<std::uint32_t>(classes.size()));
  }

 private:
  /// A picture has one class: a link must not make it an example of another one, too.
  static void require_one_class(const FolderEntry& entry, const fs::path& class_folder) {
    if (!entry.is_link) return;
    std::error_code unknown;
    const fs::path own = fs::canonical(class_folder, unknown), home = entry.real.parent_path();
    if (home != own && home.parent_path() == own.parent_path())
      throw DataError(entry.path.string() + ": is a link to a picture of another class, " + entry.real.string() +
                      "; take one of them away");
  }

  /// The pictures of all classes; `others`, if any, takes a part of them.
  void collect(const fs::path& folder, const std::vector<std::string>& classes, std::vector<File>& files,
               std::vector<File>* others) const {
    for (std::uint32_t label = 0; label < classes.size(); ++label) {
      const fs::path class_folder = folder / classes[label];
      std::size_t count = 0;
      if (others == nullptr && !is_folder(class_folder)) continue;  // a class that is not tested on
      for (const FolderEntry& entry : entries_of(class_folder)) {
        if (entry.is_folder || !is_picture(entry.path)) continue;
        require_one_class(entry, class_folder);
        const bool is_other = others != nullptr && std::floor((count + 1.0) * test_fraction_) >
                                                       std::floor(static_cast<double>(count) * test_fraction_);
        (is_other ? *others : files).push_back({entry.path, label});
        ++count;
      }
      if (count == 0) throw DataError(class_folder.string() + ": has no picture, .png, .jpg or .jpeg");
    }
  }

  DataSet data_set(std::vector<File> training, std::vector<File> testing, std::uint32_t classes) const {
    GroupedExamples shares{.size = training.size(), .groups = {}, .count = classes};
    for (const File& file : training) shares.groups.push_back(file.label);
    std::vector<Metric> metrics{accuracy_metric()};
    if (classes > 10) metrics.push_back(top5_accuracy_metric());
    return {.name = "image_folder",
            .shape = {.inputs = {.sizes = {channels, window_.side, window_.side}},
                      .targets = {.element = TensorShape::Element::classes, .classes = classes}},
            .train = std::make_shared<FolderExamples>(std::move(training), window_),
            .test = std::make_shared<FolderExamples>(std::move(testing), window_),
            .shares = std::move(shares),
            .metrics = std::move(metrics),
            .augmentable = true};
  }

  fs::path path_;
  Window window_;
  double test_fraction_;
};

}  // namespace

DatasetEntry image_folder_entry() {
  return {.name = "image_folder",
          .summary = "folders of PNG and JPEG pictures, one a class, resized and cropped",
          .equation = "value[c, y, x] = (pixel/255 - mean[c])/deviation[c] of a window of side x side pixels",
          .cost = "no communication; a picture is read whenever it is wanted, about 5 ms",
          .citation = "",
          .make = [](Config& config, std::uint64_t) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<ImageFolder>(config);
          }};
}

}  // namespace hearsay
