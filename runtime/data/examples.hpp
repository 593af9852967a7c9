#pragma once
// Examples as training needs them: how many there are, a batch of them by their indices, as tensors of whatever type
// and shape, what shares are cut by, and what the test set is judged by. Images with labels are one kind
// (runtime/data/dataset.hpp), text another.
//
// No LibTorch, and no data set need be in memory: a batch is written when it is wanted, into memory of the caller.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "runtime/data/metric.hpp"

namespace hearsay {

/// One example's tensor.
struct TensorShape {
  enum class Element { numbers, classes };  ///< float32; int64 in [0, classes), or −1: not to be learnt
  Element element = Element::numbers;
  std::vector<std::int64_t> sizes{};  ///< of one example; {}: a single value
  std::int64_t classes = 0;           ///< of elements that are classes or tokens; 0 of numbers

  /// Values of one example.
  std::size_t count() const {
    return static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()));
  }
  bool operator==(const TensorShape&) const = default;
};

/// What a model must know of the examples that it is made for.
struct ExampleShape {
  TensorShape inputs, targets;
  /// Targets are sequences that may end early, −1 from there on, and inputs have something for every one of them at
  /// their end. Models are given batches as short as they may be: (B, sizes − n) each, for the largest n that no
  /// example misses.
  bool padded = false;
  bool operator==(const ExampleShape&) const = default;
};

/// Where to write (examples, sizes…) values, row-major.
using Values = std::variant<std::span<float>, std::span<std::int64_t>>;

class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::size_t size() const = 0;
  /// Writes the examples `indices`, one after the other; equal indices give equal examples. `augmentation`: change
  /// inputs at random, for training, drawing from it; nullptr: do not. Throws std::logic_error if a size is wrong or
  /// an index is out of range, DataError if a file cannot be read.
  virtual void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets,
                     Random* augmentation) const = 0;
};

/// Training examples as shares are cut: in groups (classes of images, documents of a text), or in none.
struct GroupedExamples {
  std::size_t size = 0;
  std::vector<std::uint32_t> groups{};  ///< of each example, in [0, count); {}: there are none
  std::uint32_t count = 0;
};

/// How a sequence that a model writes, token by token, is judged. Sentences, batches and ranks add up.
class Writing {
 public:
  Writing(std::int64_t begin, std::int64_t end) : begin_(begin), end_(end) {}
  virtual ~Writing() = default;
  std::int64_t begin() const { return begin_; }  ///< the token that a sequence is begun with
  std::int64_t end() const { return end_; }      ///< the one that ends it
  virtual Metric metric() const = 0;
  /// As many tokens may be written for this source, > 0.
  virtual std::int64_t most(std::span<const std::int64_t> source) const = 0;
  /// Numbers that are added up.
  virtual std::size_t sums() const = 0;
  /// Adds what one sequence counts. Both without begin and end.
  virtual void judge(std::span<const std::int64_t> written, std::span<const std::int64_t> wanted,
                     std::span<double> sums) const = 0;
  virtual double value(std::span<const double> sums) const = 0;

 private:
  std::int64_t begin_, end_;
};

/// A data set: what to train on, what to test on, and what is wanted of a model. Cheap to copy: examples are shared.
struct DataSet {
  std::string name;
  ExampleShape shape{};
  std::shared_ptr<const Examples> train{}, test{};
  GroupedExamples shares{};       ///< of the training examples
  std::vector<Metric> metrics{};  ///< of the test set; tables and pictures show the first
  bool augmentable = false;       ///< true if `augmentation` means something and keeps targets right
  /// How what a model writes is judged, where inputs are a source and the target so far, (S + T), and targets (T); its
  /// metric is among `metrics`. nullptr: models write nothing.
  std::shared_ptr<const Writing> writing{};
  std::string vocabulary{};  ///< of tokens, as a text file; kept in the run folder and in the model's file. Empty: none
};

/// Reads or generates a data set. Construction reads the configuration only; `load` does the work.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;
  /// Equal configuration and seed give equal data, on every rank. Throws DataError for a missing or malformed file,
  /// ConfigError if it is not said where the files are or more examples are asked for than there are.
  virtual DataSet load() const = 0;
};

}  // namespace hearsay
