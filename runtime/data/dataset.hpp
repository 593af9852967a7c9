#pragma once
// Labelled images in memory, and the interface of whatever brings them there.
//
// Pixels stay bytes until a batch is made (runtime/data/image_batches.hpp): a quarter of the memory of floats.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config/table.hpp"

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

/// A data set: what to train on, what to test on, and how to normalise both.
struct ImageData {
  std::string name;
  ImageSet train, test;
  std::vector<float> mean, stddev;  ///< per channel, of pixel/255 over the training set
  bool augmentable = false;         ///< true if shifted and mirrored images keep their class (photographs; not digits)
};

/// Throws DataError, naming the set and what is wrong with it, unless both sets have images, as many pixels as they
/// need, labels below `classes` and one size, and every channel has a finite mean and a standard deviation above 0.
void require_whole(const ImageData& data);

/// Reads or generates a data set. Construction reads the configuration only; `load` does the work.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;
  /// Equal configuration and seed give equal data, on every rank. Throws DataError for a missing or malformed file,
  /// ConfigError if it is not said where the files are or more examples are asked for than there are.
  virtual ImageData load() const = 0;
};

/// The context is the run's seed; the Config is the section `data:`.
using DatasetEntry = Entry<DatasetSource, std::uint64_t>;

}  // namespace hearsay
