#pragma once
// Values through a quantiser and back.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sparsify/sparsify.hpp"
#include "tests/sparsify/bytes.hpp"

namespace hearsay::test {

inline std::unique_ptr<Quantiser> make_quantiser(const std::string& yaml) {
  Config config = Config::from_text(yaml);
  auto quantiser = chosen_entry(quantisers(), config, "none", "how values are written").make(config);
  config.document().throw_if_invalid();
  return quantiser;
}

/// Every entry of the table, and every choice that an entry has.
inline std::vector<std::string> quantiser_choices() {
  std::vector<std::string> all;
  for (const QuantiserEntry& entry : quantisers()) all.push_back("{name: " + std::string(entry.name) + "}");
  for (const std::string centre : {"threshold", "row_mean"}) all.push_back("{name: one_bit, centre: " + centre + "}");
  return all;
}

inline Bytes quantised_bytes(const Quantiser& quantiser, std::span<const float> values,
                             std::span<const std::size_t> group_ends, float step = 0.0F) {
  return written(quantiser.bound(values.size(), group_ends.size()),
                 [&](auto out) { return quantiser.encode(values, group_ends, step, out); });
}

/// q(v), with groups that end where `group_ends` says.
inline std::vector<float> quantised(const Quantiser& quantiser, std::span<const float> values,
                                    std::span<const std::size_t> group_ends, float step = 0.0F) {
  const Bytes bytes = quantised_bytes(quantiser, values, group_ends, step);
  const std::size_t bound = quantiser.bound(values.size(), group_ends.size());
  REQUIRE((quantiser.step_rule() ? bytes.size() <= bound : bytes.size() == bound));
  std::vector<float> back(values.size(), -77.0F);
  quantiser.decode(bytes, group_ends, back);
  return back;
}

/// In one group.
inline std::vector<float> quantised(const Quantiser& quantiser, std::span<const float> values, float step = 0.0F) {
  if (values.empty()) return quantised(quantiser, values, {}, step);
  const std::size_t end = values.size();
  return quantised(quantiser, values, std::span(&end, 1), step);
}

}  // namespace hearsay::test
