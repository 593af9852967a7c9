#pragma once
// What the kernels do, on vectors in the processor's memory: the same cases run on an emulated GPU and on a real one.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/gpu/kernels/mixing_algorithm.hpp"
#include "runtime/gpu/kernels/norms_algorithm.hpp"
#include "runtime/replica/device.hpp"
#include "tests/sparsify/bytes.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::test {

struct Selected {
  Indices positions;
  std::vector<float> values;
  std::uint32_t candidates = 0;
  bool read_again = false;
};

/// A selection that remembers its level from call to call.
class FusedTopK {
 public:
  virtual ~FusedTopK() = default;
  /// Adds, selects and clears in `values`. Throws DivergenceError as the processor's.
  virtual Selected add_and_select(std::vector<float>& values, std::span<const float> addend, float scale,
                                  std::uint32_t k) = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;
  /// `shift`: floats by which all runs of values lie off a multiple of 16 bytes.
  virtual std::unique_ptr<FusedTopK> topk(std::size_t n, std::uint32_t most_k, unsigned shift = 0) = 0;
  virtual std::vector<double> norms(std::span<const float> values, std::span<const device::SegmentRange> segments,
                                    unsigned shift = 0) = 0;
  virtual std::vector<float> mixed(float self_weight, std::span<const float> weights,
                                   std::span<const std::vector<float>> copies, std::span<const float> x,
                                   unsigned shift = 0) = 0;
  virtual std::vector<float> with_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                                             std::span<const float> x) = 0;
  virtual std::vector<float> gathered(std::span<const float> block, const Indices& positions) = 0;
  virtual std::vector<float> scattered(std::span<const float> block, const Indices& positions,
                                       std::span<const float> entries) = 0;
  virtual std::vector<float> scatter_added(std::span<const float> block, const Indices& positions,
                                           std::span<const float> entries, float scale) = 0;
};

/// All that this program tests: emulated ones with different orders of threads, or the GPU.
std::vector<std::unique_ptr<Machine>> machines();

/// A device for a rank's replica: an emulated one, or the GPU. Its copies go through so few bytes of staging memory; 0:
/// as many as do not take the tests' time.
std::shared_ptr<Device> replica_device(int rank, std::size_t staging_bytes = 0);

}  // namespace hearsay::test
