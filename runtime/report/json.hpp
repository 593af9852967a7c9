#pragma once
// JSON in the order in which it is written. Internal to runtime/report and apps/hearsay: the library is slow to
// compile.
#include <cmath>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/report/report.hpp"

namespace hearsay {

using Json = nlohmann::ordered_json;

/// As text. Bytes of names and arguments that are no UTF-8, which JSON cannot have, become U+FFFD. `ascii`: for a
/// terminal, which then has nothing to obey.
inline std::string dumped(const Json& json, int indent = -1, bool ascii = false) {
  return json.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

/// JSON has no NaN and no infinity: null.
inline Json json_number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }
inline Json json_number(const std::optional<double>& x) { return x ? json_number(*x) : Json(nullptr); }

/// Appends the counters under the names that all files share.
void append_totals(Json& json, const LedgerTotals& totals);
/// name, better (higher, lower), fraction; and back, which throws what the JSON library throws.
Json metric_json(const Metric& metric);
Metric metric_from(const Json& json);
/// summary.json
Json summary_json(const Summary& summary);

}  // namespace hearsay
