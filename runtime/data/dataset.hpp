#pragma once
// Labelled images in memory as a data set, and the table entry of whatever brings data sets.
//
// Pixels stay bytes until a batch is made (runtime/data/image_batches.hpp): a quarter of the memory of floats.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config/table.hpp"
#include "runtime/data/examples.hpp"

namespace hearsay {

/// N images of one size with a class each.
struct ImageSet {
  int channels = 0, height = 0, width = 0;
  int classes = 0;
  std::vector<std::uint8_t> pixels;  ///< (N, channels, height, width), row-major
  std::vector<std::uint8_t> labels;  ///< N values in [0, classes)

  std::size_t size() const { return labels.size(); }
  /// Bytes of one image.
  std::size_t image_size() const { return static_cast<std::size_t>(channels) * height * width; }
};

/// Images to train on, images to test on, and how to normalise both.
struct ImageData {
  std::string name;
  ImageSet train, test;
  std::vector<float> mean, stddev;  ///< per channel, of pixel/255 over the training set
  bool augmentable = false;         ///< true if shifted and mirrored images keep their class (photographs; not digits)
};

/// Throws DataError, naming the set and what is wrong with it, unless both sets have images, as many pixels as they
/// need, labels below `classes` and one size, and every channel has a finite mean and a standard deviation above 0.
void require_whole(const ImageData& data);

/// (C, H, W) normalised floats in, one class out.
ExampleShape shape_of(const ImageSet& images);

/// Images as examples: judged by accuracy, and by top-5 accuracy where there are more than ten classes; shares are cut
/// by label. Throws like `require_whole`.
DataSet image_classification(ImageData data);
/// The images of such a data set. Throws std::logic_error if it is none.
const ImageData& images_of(const DataSet& data);

/// The context is the run's seed; the Config is the section `data:`.
using DatasetEntry = Entry<DatasetSource, std::uint64_t>;

}  // namespace hearsay
