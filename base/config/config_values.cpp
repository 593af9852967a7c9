// Config's typed reads: text to value, with the default, the range and the complaint.
#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/config/config_state.hpp"
#include "base/config/nearest.hpp"
#include "base/text/foreign_text.hpp"

namespace hearsay {
namespace {

/// Receives what is wrong with a value; `element` is "[i]" for an element of a list, else "".
using Complain = std::function<void(const YamlValue& at, const std::string& element, const std::string& message)>;

template <class Number>
std::optional<Number> parse_all(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> parse_real(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::scalar || value.quoted) return std::nullopt;
  const std::string_view text = value.scalar;
  if (text == ".inf" || text == "+.inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf") return -std::numeric_limits<double>::infinity();
  // from_chars also takes "inf", "nan" and "+-1", which are not YAML numbers.
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos || text.starts_with("+-"))
    return std::nullopt;
  return parse_all<double>(text);
}

std::optional<std::int64_t> parse_integer(const YamlValue& value) {
  const bool plain = value.kind == YamlValue::Kind::scalar && !value.quoted && !value.scalar.starts_with("+-");
  return plain ? parse_all<std::int64_t>(value.scalar) : std::nullopt;
}

/// The number if it is one and in range; else complains.
template <class Number>
std::optional<Number> in_range(std::optional<Number> number, const char* expected, const Range& range,
                               const YamlValue& value, const std::string& element, const Complain& complain) {
  if (!number) {
    complain(value, element, std::string("expected ") + expected + ", got " + value.shown());
  } else if (!range.contains(static_cast<double>(*number))) {
    complain(value, element, "must be " + range.description() + ", got " + shown(value.scalar));
    return std::nullopt;
  }
  return number;
}

std::optional<double> read_real(const YamlValue& value, const Range& range, const std::string& element,
                                const Complain& complain) {
  return in_range(parse_real(value), "a number", range, value, element, complain);
}

std::optional<std::int64_t> read_integer(const YamlValue& value, const Range& range, const std::string& element,
                                         const Complain& complain) {
  return in_range(parse_integer(value), "an integer", range, value, element, complain);
}

template <class T, class ReadOne>
std::optional<std::vector<T>> read_list(const YamlValue& value, const char* expected, const Complain& complain,
                                        ReadOne read_one) {
  if (value.kind != YamlValue::Kind::sequence) {
    complain(value, "", std::string("expected ") + expected + ", got " + value.shown());
    return std::nullopt;
  }
  std::vector<T> numbers;
  for (std::size_t i = 0; i < value.items.size(); ++i)
    if (const auto number = read_one(value.items[i], "[" + std::to_string(i) + "]")) numbers.push_back(*number);
  return numbers.size() == value.items.size() ? std::optional(numbers) : std::nullopt;
}

std::optional<std::string> read_text(const YamlValue& value, const Complain& complain) {
  if (value.kind == YamlValue::Kind::scalar) return value.scalar;
  complain(value, "", "expected text, got " + value.shown());
  return std::nullopt;
}

std::optional<bool> read_flag(const YamlValue& value, const Complain& complain) {
  const bool plain = value.kind == YamlValue::Kind::scalar && !value.quoted;
  if (plain && value.scalar == "true") return true;
  if (plain && value.scalar == "false") return false;
  complain(value, "", "expected true or false, got " + value.shown());
  return std::nullopt;
}

bool is_one_of(std::string_view word, const std::vector<std::string>& options) {
  return std::find(options.begin(), options.end(), word) != options.end();
}

std::string unknown_choice(const YamlValue& value, const std::vector<std::string>& options) {
  if (value.kind != YamlValue::Kind::scalar)
    return "expected one of " + comma_separated(options) + ", got " + value.shown();
  const std::string near = nearest(value.scalar, options);
  return "unknown '" + shown(shortened(value.scalar)) + "'; known: " + comma_separated(options) +
         (near.empty() ? "" : " — did you mean '" + near + "'?");
}

std::string write_flag(bool x) { return x ? "true" : "false"; }
std::string write_integer(std::int64_t x) { return std::to_string(x); }

template <class T, class Write>
std::string write_list(const std::vector<T>& values, Write write) {
  std::vector<std::string> words;
  for (const T& value : values) words.push_back(write(value));
  return "[" + comma_separated(words) + "]";
}

void check_fallback(bool valid, std::string_view key) {
  if (!valid) throw std::logic_error("the default of the key '" + std::string(key) + "' is not among its values");
}

std::filesystem::path absolute_path(const std::filesystem::path& base, const std::filesystem::path& path) {
  return path.empty() ? path : (base / path).lexically_normal();
}

}  // namespace

template <class T, class Convert, class Write>
T Config::Mapping::ask(KeyDescription description, T fallback, Convert convert, Write write) {
  T result = std::move(fallback);
  if (const YamlValue* said = find_value(description.key)) {
    const std::string name = full(description.key);
    const Complain complain = [&](const YamlValue& at, const std::string& element, const std::string& message) {
      this->complain(at.position, name + element, message);
    };
    if (auto converted = convert(*said, complain)) result = std::move(*converted);
  }
  remember(std::move(description), write(result));
  return result;
}

double Config::real(std::string_view key, double fallback, Range range, std::string_view meaning) {
  check_fallback(range.contains(fallback), key);
  return mapping_->ask<double>(
      {std::string(key), "number", yaml_real(fallback), range.description(), std::string(meaning)}, fallback,
      [&](const YamlValue& value, const Complain& complain) { return read_real(value, range, "", complain); },
      yaml_real);
}

std::optional<double> Config::real_or_auto(std::string_view key, Range range, std::string_view meaning) {
  using Real = std::optional<double>;
  return mapping_->ask<Real>(
      {std::string(key), "number or auto", "auto", range.description(), std::string(meaning)}, Real{},
      [&](const YamlValue& value, const Complain& complain) -> std::optional<Real> {
        if (read_text(value, [](auto&&...) {}) == "auto") return Real{};
        const std::optional<double> real = in_range(parse_real(value), "a number or auto", range, value, "", complain);
        return real ? std::optional<Real>(real) : std::nullopt;
      },
      [](const Real& real) { return real ? yaml_real(*real) : "auto"; });
}

std::int64_t Config::integer(std::string_view key, std::int64_t fallback, Range range, std::string_view meaning) {
  check_fallback(range.contains(static_cast<double>(fallback)), key);
  return mapping_->ask<std::int64_t>(
      {std::string(key), "integer", write_integer(fallback), range.description(), std::string(meaning)}, fallback,
      [&](const YamlValue& value, const Complain& complain) { return read_integer(value, range, "", complain); },
      write_integer);
}

bool Config::flag(std::string_view key, bool fallback, std::string_view meaning) {
  return mapping_->ask<bool>({std::string(key), "true or false", write_flag(fallback), "", std::string(meaning)},
                             fallback, read_flag, write_flag);
}

std::string Config::text(std::string_view key, std::string_view fallback, std::string_view meaning) {
  return mapping_->ask<std::string>({std::string(key), "text", yaml_text(fallback), "", std::string(meaning)},
                                    std::string(fallback), read_text, yaml_text);
}

std::string Config::choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& options,
                           std::string_view meaning, std::string_view remedy) {
  check_fallback(is_one_of(fallback, options), key);
  const auto read = [&](const YamlValue& value, const Complain& complain) -> std::optional<std::string> {
    if (value.kind == YamlValue::Kind::scalar && is_one_of(value.scalar, options)) return value.scalar;
    complain(value, "", unknown_choice(value, options) + std::string(remedy));
    if (key == "name") mapping_->name_unknown = true;
    return std::nullopt;
  };
  return mapping_->ask<std::string>(
      {std::string(key), "choice", yaml_text(fallback), "one of " + comma_separated(options), std::string(meaning)},
      std::string(fallback), read, yaml_text);
}

std::filesystem::path Config::path(std::string_view key, const std::filesystem::path& fallback,
                                   std::string_view meaning) {
  const auto read = [&](const YamlValue& value, const Complain& complain) -> std::optional<std::filesystem::path> {
    const auto given = read_text(value, complain);
    if (!given) return std::nullopt;
    const bool from_command_line = value.position.source > 0;
    return absolute_path(from_command_line ? working_directory() : document_.state_->directory, *given);
  };
  return mapping_->ask<std::filesystem::path>(
      {std::string(key), "path", yaml_text(fallback.string()), "", std::string(meaning)},
      absolute_path(working_directory(), fallback), read,
      [](const std::filesystem::path& path) { return yaml_text(path.string()); });
}

std::vector<std::int64_t> Config::integers(std::string_view key, std::vector<std::int64_t> fallback, Range range,
                                           std::string_view meaning) {
  for (const std::int64_t x : fallback) check_fallback(range.contains(static_cast<double>(x)), key);
  const auto read = [&](const YamlValue& list, const Complain& complain) {
    return read_list<std::int64_t>(
        list, "a list of integers", complain,
        [&](const YamlValue& value, const std::string& i) { return read_integer(value, range, i, complain); });
  };
  const auto write = [](const std::vector<std::int64_t>& list) { return write_list(list, write_integer); };
  return mapping_->ask<std::vector<std::int64_t>>(
      {std::string(key), "list of integers", write(fallback), range.description(), std::string(meaning)},
      std::move(fallback), read, write);
}

std::vector<double> Config::reals(std::string_view key, std::vector<double> fallback, Range range,
                                  std::string_view meaning) {
  for (const double x : fallback) check_fallback(range.contains(x), key);
  const auto read = [&](const YamlValue& list, const Complain& complain) {
    return read_list<double>(list, "a list of numbers", complain, [&](const YamlValue& value, const std::string& i) {
      return read_real(value, range, i, complain);
    });
  };
  const auto write = [](const std::vector<double>& list) { return write_list(list, yaml_real); };
  return mapping_->ask<std::vector<double>>(
      {std::string(key), "list of numbers", write(fallback), range.description(), std::string(meaning)},
      std::move(fallback), read, write);
}

std::uint64_t read_seed(Config& root) {
  return static_cast<std::uint64_t>(
      root.integer("seed", 1, Range::at_least(0), "every random number of the run comes from it"));
}

}  // namespace hearsay
