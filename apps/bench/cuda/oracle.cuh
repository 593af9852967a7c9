#pragma once
// The same selection by CUB's radix sort: slow and simple. Also a competitor.
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "runtime/gpu/machine/check.cuh"
#include "runtime/gpu/machine/memory.hpp"
#include "sparsify/magnitude.hpp"

namespace hearsay::device {

template <class Body>
__global__ void for_each_index(std::uint64_t n, Body body) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    body(i);
}

/// body.operator()(i) for every i < n, on the GPU.
template <class Body>
void on_every_index(cudaStream_t stream, std::uint64_t n, const Body& body) {
  for_each_index<<<1024, 256, 0, stream>>>(n, body);
  check(cudaGetLastError());
}

struct Magnitudes {
  const float* values;
  std::uint32_t* keys;
  std::uint32_t* positions;
  __device__ void operator()(std::uint64_t i) const {
    keys[i] = static_cast<std::uint32_t>(magnitude_bits(values[i]));
    positions[i] = static_cast<std::uint32_t>(i);
  }
};

struct Add {
  float* values;
  const float* addend;
  float scale;
  __device__ void operator()(std::uint64_t i) const { values[i] += scale * addend[i]; }
};

/// Sorts all positions by magnitude, descending; the sort is stable, so of equal ones the lower position comes first.
class SortedByMagnitude {
 public:
  explicit SortedByMagnitude(std::size_t n)
      : n_(n), keys_(n), sorted_keys_(n), positions_(n), sorted_positions_(n), scratch_(scratch_bytes()) {}

  void sort(cudaStream_t stream, const float* values) {
    on_every_index(stream, n_, Magnitudes{values, keys_.data(), positions_.data()});
    std::size_t bytes = scratch_.size();
    check(cub::DeviceRadixSort::SortPairsDescending(scratch_.data(), bytes, keys_.data(), sorted_keys_.data(),
                                                    positions_.data(), sorted_positions_.data(), n_, 0, 31, stream));
  }

  /// The first k positions, ascending. Waits.
  std::vector<std::uint32_t> largest(cudaStream_t stream, std::size_t k) const {
    synchronize(stream);
    std::vector<std::uint32_t> positions(k);
    sorted_positions_.download(std::span(positions));
    std::sort(positions.begin(), positions.end());
    return positions;
  }

 private:
  std::size_t scratch_bytes() {
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, keys_.data(), sorted_keys_.data(),
                                                    positions_.data(), sorted_positions_.data(), n_, 0, 31));
    return bytes;
  }

  std::size_t n_;
  DeviceBuffer<std::uint32_t> keys_, sorted_keys_, positions_, sorted_positions_;
  DeviceBuffer<std::byte> scratch_;
};

}  // namespace hearsay::device
