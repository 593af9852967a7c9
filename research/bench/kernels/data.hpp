#pragma once
// Values that look like gradients: normal, with a scale that differs from one stretch to the next.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/replica/parameters.hpp"

namespace hearsay {

/// Block lengths that selection is measured at, up to `most`.
std::vector<std::size_t> block_lengths(std::size_t most);
/// "1e+07" without the noise: "1e7", "1.38e8".
std::string short_number(double x);

/// n values of zero mean whose standard deviation is log-normal over stretches of 4096 values (tensors and rows of a
/// network differ so). Equal for equal seeds.
FloatBlock gradient_like(std::uint64_t seed, std::size_t n);

/// A new gradient at every call, cheaply: a window of n values at a random offset into a longer block.
class GradientSource {
 public:
  explicit GradientSource(std::size_t n);
  std::span<const float> next();

 private:
  std::size_t n_;
  std::uint64_t calls_ = 0;
  std::shared_ptr<const FloatBlock> noise_;  // shared by all sources of this length
};

}  // namespace hearsay
