#pragma once
// Numbers and tables as people read them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/metric.hpp"

namespace hearsay {

std::string fixed(double x, int decimals);           ///< 0.0123
std::string significant(double x, int digits);       ///< 1.23e-05, 0.123; "–" if not finite
std::string percent(double fraction, int decimals);  ///< 31.2 %
std::string percent(double fraction);                ///< two digits that count, a decimal at least: 31.2 %, 0.043 %
std::string with_separators(std::uint64_t n);        ///< 1,234,567
std::string byte_count(double bytes);                ///< 4.12 MB (decimal units)
std::string duration(double seconds);                ///< 812 µs, 1.23 ms, 12.3 s, 3 min 20 s, 2 h 5 min

/// "97.13 %", "1.884"; "–" if not finite.
std::string metric_text(const Metric& metric, double value);
/// As people say it: "top5 accuracy", "bits per character".
std::string metric_name(const Metric& metric);

/// "1 rank", "4 ranks".
std::string counted(std::int64_t n, std::string_view noun);

/// Columns that `text` takes on a screen: code points, as none of ours is wide.
std::size_t screen_width(std::string_view text);

/// `text` with blanks up to `width` columns: after it, or in front of it.
std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);

/// Lines of aligned columns, two blanks apart, the first column to the left and the others to the right. Every row has
/// as many cells as the first.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

/// Lines of at most `width` columns, broken at blanks; continuation lines start with `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace hearsay
