#pragma once
// YAML as a plain tree of values that know where they stood, and scalars written so that they read back equal.
// What Config is built on; yaml-cpp stays behind it.
#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearsay {

/// Where a value stood: line and column from 1. `source` 0 is the document, n > 0 the n-th value set on top of it.
struct Position {
  int source = 0;
  int line = 1;
  int column = 1;
  auto operator<=>(const Position&) const = default;
};

struct YamlMember;

/// One value. Members of a mapping are in the order of the document.
struct YamlValue {
  enum class Kind { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  Position position{};
  std::string scalar{};
  bool quoted = false;  ///< a scalar in quotes (or a block scalar) is text, never a number
  std::vector<YamlValue> items{};
  std::vector<YamlMember> members;  ///< no `{}`: Clang would ask for the whole YamlMember here

  const YamlMember* find(std::string_view key) const;
  YamlMember* find(std::string_view key);
  /// As an error message shows it: 'ten', nothing, a list, a mapping.
  std::string shown() const;
};

struct YamlMember {
  std::string key;
  Position position;
  YamlValue value;
};

/// Something wrong in a document, at a place.
struct YamlProblem {
  Position position;
  std::string path;  ///< dotted key, "" for the whole document
  std::string message;
  auto operator<=>(const YamlProblem&) const = default;
};

/// A document has at most so many bytes: a network file of 10,000 ranks fits.
inline constexpr std::size_t most_yaml_bytes = std::size_t{1} << 20;

/// Parses one document, in time and memory that are bounded whatever its text is (most_yaml_bytes, 64 levels, 100,000
/// values, those of aliases included); an empty one is null. Problems that leave the rest readable (duplicate keys, of
/// which the first wins) are appended to `problems`; one that does not is thrown as a YamlProblem.
YamlValue parse_yaml(const std::string& text, int source, std::vector<YamlProblem>& problems);

/// A text as a message shows it: its first 200 bytes or so, since it may be as long as its file.
std::string shortened(const std::string& text);
/// The shortest decimal that reads back equal, as YAML writes numbers (`.inf`, `1.0e-05`).
std::string yaml_real(double x);
/// Plain where every YAML reader takes it for text, else in double quotes.
std::string yaml_text(std::string_view text);

}  // namespace hearsay
