#include "sparsify/search/collect.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/loops/read_ahead.hpp"
#include "base/loops/vector_code.hpp"
#include "sparsify/magnitude.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearsay {
namespace {

/// Appends one entry; past the capacity it only counts.
inline void append(const EntryRoom& room, std::size_t& count, std::size_t position, std::int32_t magnitude) {
  if (count < room.capacity) {
    room.positions[count] = static_cast<std::uint32_t>(position);
    room.magnitudes[count] = magnitude;
  }
  ++count;
}

/// Values [first, n), one by one; `Adds`: with the addend.
template <bool Adds>
inline std::size_t collect_singly(float* values, const float* addend, float scale, std::size_t first, std::size_t n,
                                  std::int32_t least, const EntryRoom& room, std::size_t count) {
  for (std::size_t i = first; i < n; ++i) {
    if constexpr (Adds) values[i] += scale * addend[i];
    const std::int32_t magnitude = magnitude_bits(values[i]);
    if (magnitude >= least) append(room, count, i, magnitude);
  }
  return count;
}

/// Values [first, first + length) are what the pass has come to.
template <bool Adds>
[[gnu::always_inline]] inline void read_both_ahead(const float* values, const float* addend, std::size_t first,
                                                   std::size_t length) {
  for (std::size_t i = first; i < first + length; i += cache_line) {
    read_ahead(values + i);
    if constexpr (Adds) read_ahead(addend + i);
  }
}

constexpr std::size_t block = 64;  // values that are looked at together: mostly none of them is collected

template <bool Adds>
std::size_t collect_portably(float* values, const float* addend, float scale, std::size_t n, std::int32_t least,
                             const EntryRoom& room) {
  std::size_t count = 0, first = 0;
  for (; first + block <= n; first += block) {
    float* const v = values + first;
    read_both_ahead<Adds>(values, addend, first, block);
    if constexpr (Adds) {
      for (std::size_t i = 0; i < block; ++i) v[i] += scale * addend[first + i];
    }
    std::int32_t hits = 0;
    for (std::size_t i = 0; i < block; ++i) hits += magnitude_bits(v[i]) >= least ? 1 : 0;
    if (hits > 0) count = collect_singly<false>(values, nullptr, 0.0F, first, first + block, least, room, count);
  }
  return collect_singly<Adds>(values, addend, scale, first, n, least, room, count);
}

std::size_t keep_portably(std::int32_t least, const EntryRoom& entries, std::size_t first, std::size_t count,
                          std::size_t kept) {
  for (std::size_t i = first; i < count; ++i) {
    const std::int32_t magnitude = entries.magnitudes[i];
    entries.positions[kept] = entries.positions[i];
    entries.magnitudes[kept] = magnitude;
    kept += magnitude >= least ? 1 : 0;
  }
  return kept;
}

[[gnu::always_inline]] inline void find_below_in_blocks(std::int32_t limit, std::span<const std::int32_t> magnitudes,
                                                        std::vector<std::uint32_t>& found) {
  const auto take = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (magnitudes[i] < limit) found.push_back(static_cast<std::uint32_t>(i));
    }
  };
  const std::size_t whole = magnitudes.size() - magnitudes.size() % block;
  for (std::size_t first = 0; first < whole; first += block) {
    std::int32_t hits = 0;
    for (std::size_t i = 0; i < block; ++i) hits += magnitudes[first + i] < limit ? 1 : 0;
    if (hits > 0) take(first, first + block);
  }
  take(whole, magnitudes.size());
}

#if defined(__x86_64__)

/// For every set of chosen lanes of 8: which lanes to move to the front, one a byte.
constexpr std::array<std::uint64_t, 256> make_packing() {
  std::array<std::uint64_t, 256> packing{};
  for (unsigned chosen = 0; chosen < 256; ++chosen) {
    unsigned to = 0;
    for (std::uint64_t lane = 0; lane < 8; ++lane) {
      if ((chosen >> lane & 1U) != 0) packing[chosen] |= lane << (8 * to++);
    }
  }
  return packing;
}
constexpr std::array<std::uint64_t, 256> packing = make_packing();
constexpr std::size_t lanes = 8, step = 32;  // a step: four vectors
static_assert(step <= EntryRoom::slack);

/// Stores the chosen lanes of both vectors at entry `at`, in order; returns how many they are.
[[gnu::target("avx2,popcnt"), gnu::always_inline]] inline std::size_t store_chosen(const EntryRoom& room,
                                                                                   std::size_t at, __m256i positions,
                                                                                   __m256i magnitudes, __m256i hits) {
  const auto chosen = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(hits)));
  const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(packing[chosen])));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(room.positions + at), _mm256_permutevar8x32_epi32(positions, order));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(room.magnitudes + at), _mm256_permutevar8x32_epi32(magnitudes, order));
  return static_cast<std::size_t>(__builtin_popcount(chosen));
}

template <bool Adds>
[[gnu::target("avx2,popcnt")]] std::size_t collect_with_avx2(float* values, const float* addend, float scale,
                                                             std::size_t n, std::int32_t least, const EntryRoom& room) {
  const __m256i no_sign = _mm256_set1_epi32(0x7fffffff), below = _mm256_set1_epi32(least - 1);
  const __m256i first_lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 factor = _mm256_set1_ps(scale);
  std::size_t count = 0, first = 0;
  for (; first + step <= n; first += step) {
    __m256i magnitude[step / lanes], hits[step / lanes];
    read_both_ahead<Adds>(values, addend, first, step);
#pragma GCC unroll 4  // else the vectors live in memory
    for (std::size_t v = 0; v < step / lanes; ++v) {
      float* const place = values + first + lanes * v;
      __m256 x = _mm256_loadu_ps(place);
      if constexpr (Adds) {
        x = _mm256_add_ps(x, _mm256_mul_ps(factor, _mm256_loadu_ps(addend + first + lanes * v)));
        _mm256_storeu_ps(place, x);
      }
      magnitude[v] = _mm256_and_si256(_mm256_castps_si256(x), no_sign);
      hits[v] = _mm256_cmpgt_epi32(magnitude[v], below);
    }
    const __m256i any = _mm256_or_si256(_mm256_or_si256(hits[0], hits[1]), _mm256_or_si256(hits[2], hits[3]));
    if (_mm256_testz_si256(any, any) != 0) continue;
    if (count > room.capacity) continue;  // too many already; only the sum is still of use
#pragma GCC unroll 4
    for (std::size_t v = 0; v < step / lanes; ++v) {
      const auto at = static_cast<int>(first + lanes * v);
      count += store_chosen(room, count, _mm256_add_epi32(_mm256_set1_epi32(at), first_lanes), magnitude[v], hits[v]);
    }
  }
  return collect_singly<Adds>(values, addend, scale, first, n, least, room, count);
}

[[gnu::target("avx2,popcnt")]] std::size_t keep_with_avx2(std::int32_t least, const EntryRoom& entries,
                                                          std::size_t count) {
  const __m256i below = _mm256_set1_epi32(least - 1);
  std::size_t kept = 0, first = 0;
  for (; first + lanes <= count; first += lanes) {  // what is stored never reaches what is still to be loaded
    const __m256i positions = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(entries.positions + first));
    const __m256i magnitudes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(entries.magnitudes + first));
    kept += store_chosen(entries, kept, positions, magnitudes, _mm256_cmpgt_epi32(magnitudes, below));
  }
  return keep_portably(least, entries, first, count, kept);
}

#endif

}  // namespace

// Without an addend nothing is written: the casts take away no promise.
namespace portable {

std::size_t collect(std::span<const float> values, std::int32_t least, const EntryRoom& room) {
  return collect_portably<false>(const_cast<float*>(values.data()), nullptr, 1.0F, values.size(), least, room);
}
std::size_t add_and_collect(std::span<float> values, std::span<const float> addend, float scale, std::int32_t least,
                            const EntryRoom& room) {
  return collect_portably<true>(values.data(), addend.data(), scale, values.size(), least, room);
}
std::size_t keep_from(std::int32_t least, const EntryRoom& entries, std::size_t count) {
  return keep_portably(least, entries, 0, count, 0);
}

}  // namespace portable

std::size_t collect(std::span<const float> values, std::int32_t least, const EntryRoom& room) {
#if defined(__x86_64__)
  if (has_avx2())
    return collect_with_avx2<false>(const_cast<float*>(values.data()), nullptr, 1.0F, values.size(), least, room);
#endif
  return portable::collect(values, least, room);
}

std::size_t add_and_collect(std::span<float> values, std::span<const float> addend, float scale, std::int32_t least,
                            const EntryRoom& room) {
#if defined(__x86_64__)
  if (has_avx2()) return collect_with_avx2<true>(values.data(), addend.data(), scale, values.size(), least, room);
#endif
  return portable::add_and_collect(values, addend, scale, least, room);
}

std::size_t keep_from(std::int32_t least, const EntryRoom& entries, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) return keep_with_avx2(least, entries, count);
#endif
  return portable::keep_from(least, entries, count);
}

void find_below(std::int32_t limit, std::span<const std::int32_t> magnitudes, std::vector<std::uint32_t>& found) {
  found.clear();
  in_vector_code([&]() __attribute__((always_inline)) { find_below_in_blocks(limit, magnitudes, found); });
}

}  // namespace hearsay
