#pragma once
// Sparse vectors of small integers, and codecs by name.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay::test {

/// `count` entries among n positions, values integers in [−limit, limit] without 0.
inline SparseVector random_vector(Random& random, std::size_t n, std::size_t count, int limit = 20) {
  std::vector<std::uint32_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0U);
  random.shuffle(std::span(positions));
  positions.resize(count);
  std::ranges::sort(positions);
  SparseVector v;
  for (const std::uint32_t i : positions) {
    const int magnitude = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(limit)));
    v.push_back(i, static_cast<float>(random.below(2) == 0 ? magnitude : -magnitude));
  }
  return v;
}

inline std::vector<float> dense(const SparseVector& v, std::size_t n) {
  std::vector<float> values(n);
  add_to(values, v);
  return values;
}

inline bool canonical(const SparseVector& v) {
  return v.indices.size() == v.values.size() && std::ranges::find(v.values, 0.0F) == v.values.end() &&
         std::ranges::adjacent_find(v.indices, std::greater_equal<>()) == v.indices.end();
}

inline Codec codec_of(const std::string& positions, const std::string& quantiser) {
  Config p = Config::from_text("name: " + positions), q = Config::from_text("name: " + quantiser);
  return {chosen_entry(position_coders(), p, "plain", "positions").make(p),
          chosen_entry(quantisers(), q, "none", "values").make(q)};
}

}  // namespace hearsay::test
