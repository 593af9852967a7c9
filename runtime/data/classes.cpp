#include "runtime/data/classes.hpp"

#include <cmath>

#include "base/error.hpp"

namespace hearsay {

std::uint32_t class_number(double value, const std::string& what) {
  if (value >= 0.0 && value < most_classes && std::floor(value) == value) return static_cast<std::uint32_t>(value);
  throw DataError(
      what + " is no whole number from 0 to " + std::to_string(most_classes - 1) +
      ", which is how classes and groups are numbered; for numbers to be foretold set data.task to numbers");
}

void require_few_classes(const DataSet& data) {
  const auto require = [&](std::int64_t count, const std::string& what) {
    if (count > most_classes)
      throw DataError("data '" + data.name + "': " + std::to_string(count) + " " + what + ", and at most " +
                      std::to_string(most_classes) + " are taken; join rare ones" +
                      (data.vocabulary.empty() ? "" : ", or set data.vocabulary to fewer"));
  };
  require(data.shape.inputs.classes, "tokens");
  require(data.shape.targets.classes, "classes");
  require(data.shares.count, "groups");
}

}  // namespace hearsay
