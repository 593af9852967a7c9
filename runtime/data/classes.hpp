#pragma once
// Classes, tokens and groups: whole numbers from 0 on. A file's number decides how large a model becomes, so there is
// one bound for all who read such numbers.
#include <cstdint>
#include <string>

#include "runtime/data/examples.hpp"

namespace hearsay {

inline constexpr std::uint32_t most_classes = 1'000'000;

/// A number of a file as a class, a token or a group. Throws DataError "WHAT is no whole number from 0 to 999999, …"
/// unless it is below `most_classes`.
std::uint32_t class_number(double value, const std::string& what);

/// Throws DataError, naming the data set, if its inputs or targets have more classes, or its shares more groups.
void require_few_classes(const DataSet& data);

}  // namespace hearsay
