#pragma once
// What tests of kernels that look at all segments of a packet together have in common.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sparsify/sparsify.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::test {

constexpr std::size_t staging_bytes = 1 << 16;

/// `section`: that of `sparsify` as YAML.
inline Sparsifier sparsifier_of(const std::string& section) {
  Config root = Config::from_text("sparsify: " + section + "\n");
  Config sparsify = root.section("sparsify");
  Sparsifier read = read_sparsifier(sparsify, {});
  root.document().throw_if_invalid();
  return read;
}

inline Layout layout_of(const std::vector<std::int64_t>& lengths) {
  Layout layout;
  for (const std::int64_t length : lengths) layout.append("s" + std::to_string(layout.count()), {length});
  return layout;
}

/// Single values, lengths that leave those behind them off alignment, ends of runs and of pieces, two thousand.
inline std::vector<Layout> layouts() {
  std::vector<std::int64_t> many;
  for (std::int64_t s = 0; s < 2000; ++s) many.push_back(1 + s % 37);
  return {layout_of({1}), layout_of({7, 1, 3, 1024, 5, 4099, 256, 255, 8193, 5, 16, 17, 8192, 2}),
          layout_of({50'001, 3, 17'000}), layout_of(many)};
}

struct Blocks {
  std::vector<float> x, copy;
};

inline FloatBlock on(Device& device, const std::vector<float>& values) {
  FloatBlock block = device.block(values.size());
  device.put(std::as_bytes(std::span(values)), block.span());
  device.wait();
  return block;
}

/// What the error says that this throws.
inline std::string told(const std::function<void()>& pass) {
  try {
    pass();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace hearsay::test
