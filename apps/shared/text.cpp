#include "apps/shared/text.hpp"
#include "base/text/foreign_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace hearsay {
namespace {

constexpr const char* no_number = "–";

std::string printed(const char* format, int digits, double x) {
  if (!std::isfinite(x)) return no_number;
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, digits, x);
  return {text.data(), static_cast<std::size_t>(length)};
}

/// Three digits that count: 1.23, 12.3, 123.
std::string three_digits(double x) { return fixed(x, x < 9.995 ? 2 : x < 99.95 ? 1 : 0); }

}  // namespace

std::string fixed(double x, int decimals) { return printed("%.*f", decimals, x); }
std::string significant(double x, int digits) { return printed("%.*g", digits, x); }

std::string percent(double fraction, int decimals) {
  return std::isfinite(fraction) ? fixed(100.0 * fraction, decimals) + " %" : no_number;
}

std::string percent(double fraction) {
  const double x = std::abs(100.0 * fraction);
  return percent(fraction,
                 std::isfinite(x) && x > 0.0 ? std::max(1, 1 - static_cast<int>(std::floor(std::log10(x)))) : 1);
}

std::string with_separators(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string byte_count(double bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  if (!std::isfinite(bytes)) return no_number;
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000.0;
    ++unit;
  }
  return (unit == 0 ? fixed(bytes, 0) : three_digits(bytes)) + " " + units[unit];
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return no_number;
  if (seconds == 0.0) return "0 s";
  if (seconds < 0.9995e-3) return three_digits(1e6 * seconds) + " µs";
  if (seconds < 0.9995) return three_digits(1e3 * seconds) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

std::string counted(std::int64_t n, std::string_view noun) {
  return with_separators(static_cast<std::uint64_t>(n)) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::size_t screen_width(std::string_view text) {
  const auto starts_code_point = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t own = screen_width(text);
  return std::string(text) + std::string(width > own ? width - own : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t own = screen_width(text);
  return std::string(width > own ? width - own : 0, ' ') + std::string(text);
}

std::string metric_text(const Metric& metric, double value) {
  return metric.fraction ? percent(value, 2) : significant(value, 4);
}

std::string metric_name(const Metric& metric) {
  if (metric.name == bleu_metric().name) return "BLEU";
  std::string name = metric.name;
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string aligned_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], screen_width(shown(row[c])));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string cell = shown(row[c]);
      line += c == 0 ? pad_right(cell, widths[c]) : "  " + pad_left(cell, widths[c]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::istringstream words{std::string(text)};
  std::string out, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && screen_width(line) + 1 + screen_width(word) > width) {
      out += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line;
}

}  // namespace hearsay
