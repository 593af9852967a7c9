// npy: two arrays that numpy.save has written, inputs (N, …) and targets (N, …): regression, or classes.
//   inputs = (x − mean)/deviation of its column over the training rows, or x;  target = y
// The format: numpy's own description (numpy/lib/format.py, versions 1 to 3): a magic word, a header that is a Python
// dictionary with `descr`, `fortran_order` and `shape`, then the numbers.
// Means and deviations are those of at most 10,000 training rows, evenly spread; a column that does not change is only
// shifted. Without files to test on, every 1/test_fraction-th row is tested on.
// Cost: no messages; files are mapped, and a rank keeps 4 bytes a row.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/datasets/datasets.hpp"
#include "apps/datasets/mapped_text.hpp"
#include "apps/datasets/rows/scaling.hpp"
#include "base/config/yaml.hpp"
#include "base/error.hpp"
#include "runtime/data/classes.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

/// One number of a file.
struct Element {
  char kind = 'f';  // f, i, u, b: floating-point, signed, unsigned, bool
  std::size_t bytes = 4;
};

/// Reads the header's dictionary from front to back.
class Header {
 public:
  Header(std::string_view text, const std::string& file) : left_(text), file_(file) {}

  Element element;
  bool columns_first = false;
  std::vector<std::int64_t> shape;

  void read() {
    expect('{');
    bool has[3]{};
    while (!take('}')) {
      const std::string_view key = text();
      expect(':');
      if (key == "descr")
        element = described(plain_descr()), has[0] = true;
      else if (key == "fortran_order")
        columns_first = word() == "True", has[1] = true;
      else if (key == "shape")
        shape = tuple(), has[2] = true;
      else
        fail("has the key '" + std::string(key) + "', which is none of numpy's");
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!has[0] || !has[1] || !has[2]) fail("lacks descr, fortran_order or shape");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(file_ + ": its header " + what + "; write it with numpy.save");
  }
  void skip() { left_.remove_prefix(std::min(left_.find_first_not_of(" \n"), left_.size())); }
  bool take(char c) {
    skip();
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("is no dictionary: expected '" + std::string(1, c) + "'");
  }
  std::string_view text() {
    skip();
    const char quote = left_.empty() ? ' ' : left_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? left_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("is no dictionary: expected a word in quotes");
    const std::string_view found = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return found;
  }
  std::string_view plain_descr() {
    if (take('['))
      fail(
          "says that its rows are records (a structured array); make one array of numbers, by "
          "numpy.lib.recfunctions.structured_to_unstructured(a)");
    return text();
  }
  std::string_view word() {
    skip();
    const std::string_view found = left_.substr(0, std::min(left_.find_first_of(",} \n"), left_.size()));
    if (found != "True" && found != "False") fail("has a fortran_order that is neither True nor False");
    left_.remove_prefix(found.size());
    return found;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip();
      std::int64_t size = 0;
      const auto [rest, error] = std::from_chars(left_.data(), left_.data() + left_.size(), size);
      if (error != std::errc() || size < 0) fail("has a shape that is no list of sizes");
      left_.remove_prefix(static_cast<std::size_t>(rest - left_.data()));
      sizes.push_back(size);
      if (sizes.size() > most_dimensions)
        fail("has a shape of more than " + std::to_string(most_dimensions) + " sizes");
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }
  Element described(std::string_view text) const {
    constexpr std::string_view known[]{"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"};
    const bool fits = text.size() == 3 && (text[0] == '<' || text[0] == '|' || text[0] == '=') &&
                      std::ranges::find(known, text.substr(1)) != std::end(known);
    if (!fits)
      fail("says that its numbers are '" + std::string(text) +
           "'; floats of 4 or 8 bytes and whole numbers of 1 to 8 can be read, little-endian ones: use "
           "array.astype('<f4')");
    return {text[1], static_cast<std::size_t>(text[2] - '0')};
  }

  static constexpr std::size_t most_dimensions = 64;  // as numpy 2 has
  std::string_view left_;
  const std::string& file_;
};

template <class Number>
double number_at(const char* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return static_cast<double>(number);
}

/// A mapped array of rows.
class Array {
 public:
  explicit Array(const fs::path& file) : text_(read_bytes(file)) {
    const std::string_view bytes = text_.characters;
    constexpr std::string_view magic = "\x93NUMPY";
    if (!bytes.starts_with(magic) || bytes.size() < 12)
      throw DataError(origin() + ": is no file of numpy.save: it does not begin with \\x93NUMPY");
    if (bytes[6] < 1 || bytes[6] > 3)
      throw DataError(origin() + ": has version " + std::to_string(static_cast<unsigned char>(bytes[6])) +
                      " of numpy's format, and 1 to 3 can be read; write it with numpy.save");
    const bool narrow = bytes[6] == 1;
    const std::size_t first = narrow ? 10 : 12;
    const std::size_t length = narrow ? static_cast<std::size_t>(number_at<std::uint16_t>(&bytes[8]))
                                      : static_cast<std::size_t>(number_at<std::uint32_t>(&bytes[8]));
    if (length > bytes.size() - first) throw DataError(origin() + ": is truncated: it ends within its header");
    Header header(bytes.substr(first, length), text_.origin);
    header.read();
    element_ = header.element;
    sizes_ = std::move(header.shape);
    if (sizes_.empty()) throw DataError(origin() + ": has one number and no rows: its shape is ()");
    if (header.columns_first && sizes_.size() > 1)
      throw DataError(origin() + ": is in Fortran's order; write it with numpy.save(file, numpy.ascontiguousarray(a))");
    rows_ = static_cast<std::size_t>(sizes_.front());
    sizes_.erase(sizes_.begin());
    numbers_ = bytes.substr(first + length);
    require_size();
  }
  const std::string& origin() const { return text_.origin; }
  std::size_t rows() const { return rows_; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }  ///< of a row
  std::size_t row_size() const { return row_size_; }
  bool is_floating() const { return element_.kind == 'f'; }

  /// A row's j-th number. Throws DataError, naming the row, if it is not finite.
  double at(std::size_t row, std::size_t j) const {
    const double number = read(numbers_.data() + (row * row_size_ + j) * element_.bytes);
    if (!std::isfinite(number))
      throw DataError(origin() + ": row " + std::to_string(row) + " has a number that is not finite");
    return number;
  }
  /// The same of a target. Throws DataError, naming the row and the column, if no float holds it either.
  double target(std::size_t row, std::size_t j) const {
    const double number = at(row, j);
    if (!fits_float(number))
      throw DataError(origin() + ": row " + std::to_string(row) + ", column " + std::to_string(j) + ": " +
                      yaml_real(number) +
                      " is too large for a target, which is a float of 4 bytes; scale targets down");
    return number;
  }

 private:
  void require_size() {
    constexpr std::size_t most = std::size_t{1} << 40;
    std::size_t count = element_.bytes;
    for (const std::int64_t size : sizes_) {
      if (size == 0) throw DataError(origin() + ": its rows have no numbers");
      if (static_cast<std::size_t>(size) > most / count) throw DataError(origin() + ": its rows are too long");
      count *= static_cast<std::size_t>(size);
    }
    row_size_ = count / element_.bytes;
    if (rows_ == 0) throw DataError(origin() + ": has no rows");
    if (rows_ > 0xffffffff || rows_ != numbers_.size() / count || numbers_.size() % count != 0)
      throw DataError(origin() + ": is truncated or damaged: its header says " + std::to_string(rows_) + " rows of " +
                      std::to_string(count) + " bytes, but " + std::to_string(numbers_.size()) + " bytes follow it");
  }
  double read(const char* at) const {
    if (element_.kind == 'f') return element_.bytes == 4 ? number_at<float>(at) : number_at<double>(at);
    const bool with_sign = element_.kind == 'i';
    switch (element_.bytes) {
      case 1:
        return with_sign ? number_at<std::int8_t>(at) : number_at<std::uint8_t>(at);
      case 2:
        return with_sign ? number_at<std::int16_t>(at) : number_at<std::uint16_t>(at);
      case 4:
        return with_sign ? number_at<std::int32_t>(at) : number_at<std::uint32_t>(at);
      default:
        return with_sign ? number_at<std::int64_t>(at) : number_at<std::uint64_t>(at);
    }
  }

  Text text_;
  Element element_;
  std::size_t rows_ = 0, row_size_ = 1;
  std::vector<std::int64_t> sizes_;
  std::string_view numbers_;
};

/// Inputs and targets of equally many rows.
struct Arrays {
  Array inputs, targets;
  Arrays(const fs::path& of_inputs, const fs::path& of_targets) : inputs(of_inputs), targets(of_targets) {
    if (inputs.rows() != targets.rows())
      throw DataError(inputs.origin() + " has " + std::to_string(inputs.rows()) + " rows, and " + targets.origin() +
                      " " + std::to_string(targets.rows()) + ": each row of inputs needs its target");
  }
};

class NpyExamples final : public Examples {
 public:
  NpyExamples(std::shared_ptr<const Arrays> arrays, std::vector<std::uint32_t> rows,
              std::shared_ptr<const Scaling> scaling)
      : arrays_(std::move(arrays)), rows_(std::move(rows)), scaling_(std::move(scaling)) {}
  std::size_t size() const override { return rows_.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const override {
    const auto in = std::get<std::span<float>>(inputs);
    const Array &x = arrays_->inputs, &y = arrays_->targets;
    const std::size_t n = x.row_size(), m = y.row_size();
    const std::size_t wanted = std::visit([](auto out) { return out.size(); }, targets);
    if (in.size() != indices.size() * n || wanted != indices.size() * m)
      throw std::logic_error("npy: the tensors do not have the batch's size");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::size_t row = rows_.at(indices[i]);
      for (std::size_t j = 0; j < n; ++j) in[i * n + j] = (*scaling_)(j, x.at(row, j));
      const auto copy = [&](auto out) {
        for (std::size_t j = 0; j < m; ++j)
          out[i * m + j] = static_cast<std::remove_cvref_t<decltype(out[j])>>(y.target(row, j));
      };
      std::visit(copy, targets);
    }
  }

 private:
  std::shared_ptr<const Arrays> arrays_;
  std::vector<std::uint32_t> rows_;
  std::shared_ptr<const Scaling> scaling_;  // of every column
};

class Npy final : public DatasetSource {
 public:
  explicit Npy(Config& config)
      : inputs_(config.path("inputs", "", "file of the inputs, (N, …); (N) is a column")),
        targets_(config.path("targets", "", "file of the targets: (N) classes, or (N, …) numbers")),
        test_inputs_(config.path("test_inputs", "", "file of the inputs to test on; empty: some rows of inputs")),
        test_targets_(config.path("test_targets", "", "file of their targets")),
        test_fraction_(config.real("test_fraction", 0.1,
                                   {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                                   "part of the rows to test on, evenly spread, where there is no test_inputs")),
        classes_(config.choice("task", "numbers", {"numbers", "classes"},
                               "what targets are: numbers, learnt by mean square error, or classes 0, 1, …") ==
                 "classes"),
        standardised_(config.flag("standardise", true,
                                  "shift and scale every column of a row to mean 0 and deviation 1 over the training "
                                  "rows; false: take inputs as they are")) {
    config.require(test_inputs_.empty() == test_targets_.empty(), "test_targets",
                   "test_inputs and test_targets belong together: give both or none");
  }

  DataSet load() const override {
    for (const auto& [path, key] : {std::pair{inputs_, "inputs"}, {targets_, "targets"}})
      if (path.empty())
        throw ConfigError("data." + std::string(key) + " is empty: say which file has them (`--set data." + key +
                          "=FILE.npy`)");
    const auto arrays = std::make_shared<const Arrays>(inputs_, targets_);
    const auto other = test_inputs_.empty() ? arrays : std::make_shared<const Arrays>(test_inputs_, test_targets_);
    for (const auto& [ours, theirs] : {std::pair{&arrays->inputs, &other->inputs}, {&arrays->targets, &other->targets}})
      if (row_shape(*ours) != row_shape(*theirs))
        throw DataError(theirs->origin() + ": its rows have another shape than those of " + ours->origin());
    std::vector<std::uint32_t> training, testing;
    for (std::uint32_t row = 0; row < arrays->inputs.rows(); ++row)
      (test_inputs_.empty() && is_test(row) ? testing : training).push_back(row);
    if (!test_inputs_.empty())
      for (std::uint32_t row = 0; row < other->inputs.rows(); ++row) testing.push_back(row);
    if (training.empty() || testing.empty())
      throw DataError(arrays->inputs.origin() + ": " + std::to_string(arrays->inputs.rows()) +
                      " rows are too few to train on some and test on others; change data.test_fraction");
    return data_set(arrays, other, std::move(training), std::move(testing));
  }

 private:
  bool is_test(std::uint32_t row) const {
    return std::floor((row + 1.0) * test_fraction_) > std::floor(row * test_fraction_);
  }

  DataSet data_set(const std::shared_ptr<const Arrays>& arrays, const std::shared_ptr<const Arrays>& other,
                   std::vector<std::uint32_t> training, std::vector<std::uint32_t> testing) const {
    GroupedExamples shares{.size = training.size()};
    TensorShape target{.sizes = arrays->targets.sizes()};
    if (classes_) {
      for (const std::uint32_t row : training) shares.groups.push_back(class_of(arrays->targets, row));
      shares.count = std::ranges::max(shares.groups) + 1;
      target = {.element = TensorShape::Element::classes, .classes = shares.count};
      for (const std::uint32_t row : testing)
        if (class_of(other->targets, row) >= shares.count)
          throw DataError(other->targets.origin() + ": row " + std::to_string(row) +
                          ": this class does not occur among the training rows, which have " +
                          std::to_string(shares.count));
    }
    const auto scaling = std::make_shared<const Scaling>(scaling_of(arrays->inputs, training));
    return {.name = "npy",
            .shape = {.inputs = {.sizes = row_shape(arrays->inputs)}, .targets = target},
            .train = std::make_shared<NpyExamples>(arrays, std::move(training), scaling),
            .test = std::make_shared<NpyExamples>(other, std::move(testing), scaling),
            .shares = std::move(shares),
            .metrics = {classes_ ? accuracy_metric() : rmse_metric(), loss_metric()}};
  }

  /// (N,) is (N, 1): a column.
  static std::vector<std::int64_t> row_shape(const Array& array) {
    return array.sizes().empty() ? std::vector<std::int64_t>{1} : array.sizes();
  }

  static std::uint32_t class_of(const Array& targets, std::size_t row) {
    const std::string where = targets.origin() + ": row " + std::to_string(row) + " is no class: ";
    if (targets.row_size() != 1) throw DataError(where + "it has " + std::to_string(targets.row_size()) + " numbers");
    const double value = targets.at(row, 0);
    return class_number(value, where + yaml_real(value));
  }

  Scaling scaling_of(const Array& inputs, const std::vector<std::uint32_t>& training) const {
    constexpr std::size_t most_rows = 10'000;
    if (!standardised_) return Scaling(inputs.row_size());
    const std::size_t count = std::min(most_rows, training.size());
    Moments moments(inputs.row_size());
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < inputs.row_size(); ++j)
        moments.add(j, inputs.at(training[i * training.size() / count], j));
    return Scaling(moments);
  }

  fs::path inputs_, targets_, test_inputs_, test_targets_;
  double test_fraction_;
  bool classes_, standardised_;
};

}  // namespace

DatasetEntry npy_entry() {
  return {.name = "npy",
          .summary = "arrays that numpy.save has written: regression, or classes",
          .equation = "inputs = (x - mean)/deviation, column by column; target = y",
          .cost = "no communication; files are mapped, 4 bytes a row",
          .citation = "",
          .make = [](Config& config, std::uint64_t) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<Npy>(config);
          }};
}

}  // namespace hearsay
