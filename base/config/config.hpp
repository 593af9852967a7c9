#pragma once
// Strict configuration: reading is validating.
//
// A Config is a position-aware view of one YAML mapping. Every key is asked for by name with a default, a range and a
// meaning; what was asked is remembered, so that afterwards
//   - keys nobody asked for, wrong types and values out of range are all reported at once, as `file:line:column`, with
//     the nearest known key (`throw_if_invalid`),
//   - the complete configuration, defaults included, can be written and read back (`dump`),
//   - `hearsay describe` can list an algorithm's keys (`keys`).
// Views of one document share one error list and live as long as any of them. Not thread-safe.
#include <any>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearsay {

/// The values a number may take: [min, max], or without the end points where `above`/`below` are set.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;

  static Range at_least(double x) { return {.min = x}; }
  static Range above(double x) { return {.min = x, .min_excluded = true}; }
  static Range between(double low, double high) { return {.min = low, .max = high}; }
  /// (0, 1]: densities and fractions of which nothing is not a choice.
  static Range fraction_above_zero() { return {.min = 0.0, .max = 1.0, .min_excluded = true}; }
  /// [0, 1).
  static Range fraction_below_one() { return {.min = 0.0, .max = 1.0, .max_excluded = true}; }

  bool contains(double x) const;    ///< false for NaN
  std::string description() const;  ///< "in (0, 1]", ">= 0", or "" if unbounded
};

/// One key that was asked for, as `hearsay describe` shows it.
struct KeyDescription {
  std::string key, type, fallback, range, meaning;
};

class Config;

/// The whole of a configuration, which all its views share: what is set before it is read, and what comes of reading.
class ConfigDocument {
 public:
  /// Sets a dotted key to a value in YAML before anything is read: `override_with("trigger.horizon=0.95")`. `place`:
  /// how messages name it, `--set trigger.horizon=0.95` if left out.
  /// Throws ConfigError if the text is not `key=value` or passes through something that is not a mapping.
  void override_with(const std::string& assignment, const std::string& place = "");
  /// Between overriding and reading: reads the document as it stands without what was set on top of it. A key of the
  /// document that is known then and not afterwards belonged to a choice that is overridden (the horizon of a trigger
  /// that is another one now): it is left out with a note instead of being an error. `read` reads as the program is
  /// going to; its `throw_if_invalid` always throws, so that nothing is done with what it has read.
  void rehearse(const std::function<void(Config)>& read);

  /// The default of a key that is read later, where the document does not say it: a choice that was read before gives
  /// others theirs. `key` is dotted, from the root; `yaml` is its value. A later suggestion counts.
  void suggest(const std::string& key, const std::string& yaml);

  /// Something of the program's own that is no YAML, for whoever reads the document and asks for it by this name: the
  /// trigger of trigger/trigger.hpp. `provided` is null if there is none.
  void provide(const std::string& name, std::any thing);
  const std::any* provided(const std::string& name) const;

  /// All notes, once everything is read: `note`'s, then keys of the file that are left out.
  std::vector<std::string> notes() const;

  /// Throws one ConfigError that lists every error recorded so far and every key that nobody asked for.
  void throw_if_invalid() const;

  /// The complete document, in the order in which it was asked for, defaults included: YAML that gives the same run.
  std::string dump() const;
  /// What of it was given, by the document or on top of it: YAML that gives the same run as long as defaults stay.
  std::string given() const;

 private:
  friend class Config;
  struct State;
  explicit ConfigDocument(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// One mapping of it.
class Config {
 public:
  /// An empty document: every key takes its default.
  Config();
  /// Throws DataError if the file cannot be read, ConfigError (file:line:column) if it is not YAML or not a mapping.
  static Config from_file(const std::filesystem::path& file);
  static Config from_text(const std::string& yaml, const std::string& origin = "configuration");
  ConfigDocument document() const { return document_; }

  /// The mapping under `key`; an absent one is empty.
  Config section(std::string_view key);
  /// The mappings of the list under `key`, in its order; an absent list has none.
  std::vector<Config> sections(std::string_view key, std::string_view meaning);
  bool has(std::string_view key) const;
  /// Whether somebody has asked for `key` before.
  bool asked(std::string_view key) const;

  double real(std::string_view key, double fallback, Range range, std::string_view meaning);
  /// Nothing where the document says `auto`, which is the default.
  std::optional<double> real_or_auto(std::string_view key, Range range, std::string_view meaning);
  std::int64_t integer(std::string_view key, std::int64_t fallback, Range range, std::string_view meaning);
  bool flag(std::string_view key, bool fallback, std::string_view meaning);
  std::string text(std::string_view key, std::string_view fallback, std::string_view meaning);
  /// One of `options`. `remedy`: what to do about another one, added to the complaint.
  std::string choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& options,
                     std::string_view meaning, std::string_view remedy = "");
  /// A path; a relative one in a file is relative to that file, one from the command line to the working directory.
  std::filesystem::path path(std::string_view key, const std::filesystem::path& fallback, std::string_view meaning);
  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback, Range range,
                                     std::string_view meaning);
  std::vector<double> reals(std::string_view key, std::vector<double> fallback, Range range, std::string_view meaning);

  /// Records an error at `key`'s place (or at the mapping's, if the key is absent) unless `holds`.
  void require(bool holds, std::string_view key, const std::string& message);
  /// The same, unconditionally, of a message that names the key itself.
  void refuse(std::string_view key, const std::string& message);

  /// What to say of `key` if the document has it and nobody asks for it: why that is so and what to do.
  void explain_unknown(std::string_view key, const std::string& reason);

  /// The keys of this mapping that nobody has asked for so far, in the document's order.
  std::vector<std::string> unasked() const;
  /// `key`, a value or a section, is for another program that reads this document: it is neither judged nor written.
  void disregard(std::string_view key);

  /// Something that the user should know of a valid configuration.
  void note(const std::string& sentence);
  /// The keys asked for in this mapping, in order; those of its sections as `section.key`.
  std::vector<KeyDescription> keys() const;

 private:
  friend class ConfigDocument;
  struct Mapping;
  Config(ConfigDocument document, Mapping* mapping) : document_(std::move(document)), mapping_(mapping) {}

  ConfigDocument document_;
  Mapping* mapping_;  // owned by the document
};

/// The key `seed` of the whole configuration: every random number of a run comes from it.
std::uint64_t read_seed(Config& root);

}  // namespace hearsay
