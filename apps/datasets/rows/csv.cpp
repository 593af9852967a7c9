// csv: rows of numbers in a text file, one column to be foretold: a number (regression) or a class.
//   inputs = ((column − mean)/deviation, …) of all columns but the target's and the group's; target = its column
// Means and deviations are those of the training rows; a column that does not change is only shifted. Without a file of
// test rows, every 1/test_fraction-th row is one. Every line has as many fields as the header has names.
// Cost: no messages; the file is mapped and read twice at the start; a rank keeps 8 bytes a row, and parses a row
// whenever it is wanted.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
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
#include "base/text/foreign_text.hpp"
#include "runtime/data/classes.hpp"

namespace hearsay {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view field) {
  constexpr std::string_view blanks = " \t\r\"";
  const auto first = field.find_first_not_of(blanks);
  return first == std::string_view::npos ? "" : field.substr(first, field.find_last_not_of(blanks) - first + 1);
}

/// The line that begins at `at`, without its end; moves `at` after it.
std::string_view take_line(const char*& at, const char* end) {
  const char* const line_end = std::find(at, end, '\n');
  const std::string_view line(at, line_end);
  at = line_end == end ? end : line_end + 1;
  return line;
}

void for_fields(std::string_view line, char separator, const auto& each) {
  std::size_t column = 0;
  for (std::size_t begin = 0; begin <= line.size(); ++column) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    each(column, trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
}

/// A file's rows: where they begin, and what its columns are called.
class Rows {
 public:
  Rows(Text text, char separator, bool header) : text_(std::move(text)), separator_(separator) {
    const std::string_view characters = text_.characters;
    require_no_nul(characters, text_.origin);
    const std::size_t last = characters.find_last_not_of(" \t\r\n");  // blank lines at the end are no rows
    const char* at = characters.data();
    const char* const end = at + (last == std::string_view::npos ? 0 : last + 1);
    if (header)
      for_fields(take_line(at, end), separator_,
                 [&](std::size_t, std::string_view name) { names_.emplace_back(name); });
    first_line_ = header ? 2 : 1;
    for (std::size_t line = first_line_; at != end; ++line) {
      const char* const begin = at;
      if (trimmed(take_line(at, end)).empty())
        throw DataError(text_.origin + ": line " + std::to_string(line) + " is empty; leave such lines out");
      starts_.push_back(begin);
    }
    if (starts_.empty()) throw DataError(text_.origin + ": has no rows; lines end with a line feed");
    name_columns(header);
  }
  std::size_t size() const { return starts_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& origin() const { return text_.origin; }
  std::size_t line_of(std::size_t row) const { return first_line_ + row; }

  /// Throws DataError unless the file of other rows has the same columns in the same order.
  void require_same_columns(const Rows& other) const {
    if (names_ == other.names_) return;
    if (names_.size() != other.names_.size())
      throw DataError(other.origin() + ": " + std::to_string(other.names_.size()) + " columns, but " + origin() +
                      " has " + std::to_string(names_.size()));
    const auto [ours, theirs] = std::ranges::mismatch(names_, other.names_);
    throw DataError(other.origin() + ": column " + std::to_string(ours - names_.begin() + 1) + " is '" + *theirs +
                    "', but in " + origin() + " it is '" + *ours + "'; give both files the same columns");
  }

  /// Fills `values` with the numbers of a row. Throws DataError, naming the line and the column, unless it has as many
  /// as there are columns, all finite.
  void read(std::size_t row, std::vector<double>& values) const {
    values.assign(columns_, 0.0);
    std::size_t count = 0;
    for_fields(line(row), separator_, [&](std::size_t column, std::string_view field) {
      count = column + 1;
      if (column >= columns_) return;
      const auto [rest, error] = std::from_chars(field.data(), field.data() + field.size(), values[column]);
      if (error != std::errc() || rest != field.data() + field.size() || !std::isfinite(values[column]))
        throw DataError(origin() + ": line " + std::to_string(line_of(row)) + ", column '" + names_[column] + "': '" +
                        std::string(field) + "' is no finite number");
    });
    if (count != columns_)
      throw DataError(origin() + ": line " + std::to_string(line_of(row)) + ": " + std::to_string(count) +
                      " fields, expected " + std::to_string(columns_));
  }

 private:
  /// Throws DataError where header and lines disagree, or two columns have one name: another column would be read.
  void name_columns(bool header) {
    columns_ = fields(0);
    for (std::size_t column = 0; !header && column < columns_; ++column) names_.push_back(std::to_string(column));
    if (names_.size() != columns_)
      throw DataError(origin() + ": the header has " + std::to_string(names_.size()) + " names, line 2 has " +
                      std::to_string(columns_) + " fields; " +
                      (names_.size() + 1 == columns_
                           ? "if the first field is a row's name, as R writes it, leave it out (row.names = FALSE)"
                           : "is data.separator right?"));
    std::vector<std::string> ordered = names_;
    std::ranges::sort(ordered);
    if (const auto twice = std::ranges::adjacent_find(ordered); twice != ordered.end())
      throw DataError(origin() + ": the header has the name '" + *twice + "' twice; give each column its own");
  }
  std::string_view line(std::size_t row) const {
    const char* at = starts_[row];
    return take_line(at, text_.characters.data() + text_.characters.size());
  }
  std::size_t fields(std::size_t row) const {
    std::size_t count = 0;
    for_fields(line(row), separator_, [&](std::size_t, std::string_view) { ++count; });
    return count;
  }

  Text text_;
  char separator_;
  std::vector<std::string> names_;
  std::size_t first_line_ = 1, columns_ = 0;
  std::vector<const char*> starts_;
};

/// Which column is what, and how inputs are scaled.
struct Meaning {
  std::size_t target = 0;
  std::vector<std::size_t> inputs{};
  Scaling scaling{0};  // of the inputs
};

class TableExamples final : public Examples {
 public:
  TableExamples(std::shared_ptr<const Rows> rows, std::vector<std::uint32_t> chosen, Meaning meaning)
      : rows_(std::move(rows)), chosen_(std::move(chosen)), meaning_(std::move(meaning)) {}
  std::size_t size() const override { return chosen_.size(); }
  void batch(std::span<const std::uint32_t> indices, Values inputs, Values targets, Random*) const override {
    const auto in = std::get<std::span<float>>(inputs);
    const std::size_t columns = meaning_.inputs.size();
    if (in.size() != indices.size() * columns) throw std::logic_error("csv: the tensors do not have the batch's size");
    std::vector<double> values;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= chosen_.size()) throw std::logic_error("there is no row " + std::to_string(indices[i]));
      rows_->read(chosen_[indices[i]], values);
      for (std::size_t j = 0; j < columns; ++j) in[i * columns + j] = meaning_.scaling(j, values[meaning_.inputs[j]]);
      std::visit(
          [&](auto out) { out[i] = static_cast<std::remove_cvref_t<decltype(out[i])>>(values[meaning_.target]); },
          targets);
    }
  }

 private:
  std::shared_ptr<const Rows> rows_;
  std::vector<std::uint32_t> chosen_;
  Meaning meaning_;
};

class Csv final : public DatasetSource {
 public:
  explicit Csv(Config& config)
      : path_(config.path("path", "", "the file")),
        test_path_(config.path("test_path", "", "file of the rows to test on; empty: some of path's")),
        test_fraction_(config.real("test_fraction", 0.1,
                                   {.min = 0.0, .max = 1.0, .min_excluded = true, .max_excluded = true},
                                   "part of the rows of path to test on, evenly spread, where there is no test_path")),
        separator_(config.text("separator", ",", "the character between fields; quotes around fields are taken off")),
        header_(config.flag("header", true, "the first line has the columns' names; false: they are called 0, 1, …")),
        target_(config.text("target", "", "the column to be foretold; empty: the last one")),
        classes_(config.choice("task", "numbers", {"numbers", "classes"},
                               "what the target is: a number, learnt by mean square error, or a class 0, 1, …") ==
                 "classes"),
        group_(config.text("group", "",
                           "a column of whole numbers from 0 on by which shares are cut, and which is no "
                           "input; empty: by class, if there are classes")) {
    config.require(separator_.size() == 1, "separator", "must be one character, got '" + separator_ + "'");
  }

  DataSet load() const override {
    if (path_.empty()) throw ConfigError("data.path is empty: say which file has the rows (`--set data.path=FILE`)");
    const auto rows = read(path_);
    const auto other = test_path_.empty() ? rows : read(test_path_);
    rows->require_same_columns(*other);
    std::vector<std::uint32_t> training, testing;
    for (std::uint32_t row = 0; row < rows->size(); ++row)
      (test_path_.empty() && is_test(row) ? testing : training).push_back(row);
    if (!test_path_.empty())
      for (std::uint32_t row = 0; row < other->size(); ++row) testing.push_back(row);
    if (training.empty() || testing.empty())
      throw DataError(rows->origin() + ": " + std::to_string(rows->size()) +
                      " rows are too few to train on some and test on others; change data.test_fraction");
    return data_set(rows, other, std::move(training), std::move(testing));
  }

 private:
  bool is_test(std::uint32_t row) const {
    return std::floor((row + 1.0) * test_fraction_) > std::floor(row * test_fraction_);
  }

  std::shared_ptr<const Rows> read(const fs::path& file) const {
    return std::make_shared<Rows>(read_text(file), separator_.front(), header_);
  }

  std::size_t column(const Rows& rows, const std::string& name, const std::string& key) const {
    const auto found = std::ranges::find(rows.names(), name);
    if (found != rows.names().end()) return static_cast<std::size_t>(found - rows.names().begin());
    std::string known;
    for (const std::string& one : rows.names()) known += (known.empty() ? "" : ", ") + one;
    throw ConfigError("data." + key + ": " + rows.origin() + " has no column '" + name + "'; it has " + known);
  }

  /// A row's class or group.
  static std::uint32_t whole(double value, const Rows& rows, std::size_t row, const std::string& what) {
    return class_number(value, rows.origin() + ": line " + std::to_string(rows.line_of(row)) + ": the " + what + " " +
                                   yaml_real(value));
  }

  static void require_float(double value, const Rows& rows, std::size_t row, std::size_t column) {
    if (!fits_float(value))
      throw DataError(rows.origin() + ": line " + std::to_string(rows.line_of(row)) + ", column '" +
                      rows.names()[column] + "': " + yaml_real(value) +
                      " is too large for a target, which is a float of 4 bytes; scale this column down");
  }

  DataSet data_set(const std::shared_ptr<const Rows>& rows, const std::shared_ptr<const Rows>& other,
                   std::vector<std::uint32_t> training, std::vector<std::uint32_t> testing) const {
    constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
    Meaning meaning;
    meaning.target = target_.empty() ? rows->names().size() - 1 : column(*rows, target_, "target");
    const std::size_t group = group_.empty() ? (classes_ ? meaning.target : nowhere) : column(*rows, group_, "group");
    for (std::size_t c = 0; c < rows->names().size(); ++c)
      if (c != meaning.target && c != group) meaning.inputs.push_back(c);
    if (meaning.inputs.empty()) throw DataError(rows->origin() + ": no column is left for inputs");

    GroupedExamples shares{.size = training.size()};
    std::uint32_t classes = 0;
    std::vector<double> values;
    Moments moments(meaning.inputs.size());
    for (const std::uint32_t row : training) {
      rows->read(row, values);
      for (std::size_t j = 0; j < meaning.inputs.size(); ++j) moments.add(j, values[meaning.inputs[j]]);
      if (!classes_) require_float(values[meaning.target], *rows, row, meaning.target);
      if (classes_) classes = std::max(classes, whole(values[meaning.target], *rows, row, "class") + 1);
      if (group != nowhere) {
        shares.groups.push_back(whole(values[group], *rows, row, "group"));
        shares.count = std::max(shares.count, shares.groups.back() + 1);
      }
    }
    meaning.scaling = Scaling(moments);
    for (const std::uint32_t row : testing) {
      other->read(row, values);
      if (!classes_) require_float(values[meaning.target], *other, row, meaning.target);
      if (classes_ && whole(values[meaning.target], *other, row, "class") >= classes)
        throw DataError(other->origin() + ": line " + std::to_string(other->line_of(row)) +
                        ": this class does not occur among the training rows, which have " + std::to_string(classes));
    }
    const TensorShape target{.element = classes_ ? TensorShape::Element::classes : TensorShape::Element::numbers,
                             .classes = classes};
    return {.name = "csv",
            .shape = {.inputs = {.sizes = {static_cast<std::int64_t>(meaning.inputs.size())}}, .targets = target},
            .train = std::make_shared<TableExamples>(rows, std::move(training), meaning),
            .test = std::make_shared<TableExamples>(other, std::move(testing), meaning),
            .shares = std::move(shares),
            .metrics = {classes_ ? accuracy_metric() : rmse_metric(), loss_metric()}};
  }

  fs::path path_, test_path_;
  double test_fraction_;
  std::string separator_;
  bool header_;
  std::string target_;
  bool classes_;
  std::string group_;
};

}  // namespace

DatasetEntry csv_entry() {
  return {.name = "csv",
          .summary = "rows of numbers in a text file: regression, or classes",
          .equation = "inputs = ((column - mean)/deviation, ...); target = one column",
          .cost = "no communication; the file stays on disk, 8 bytes a row",
          .citation = "",
          .make = [](Config& config, std::uint64_t) -> std::unique_ptr<DatasetSource> {
            return std::make_unique<Csv>(config);
          }};
}

}  // namespace hearsay
