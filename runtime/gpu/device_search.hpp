#pragma once
// The selection of one run of values on a device, by whichever kernels the selector's search asks for.
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "runtime/gpu/kernels/chunked_algorithm.hpp"
#include "runtime/gpu/kernels/mstopk_algorithm.hpp"
#include "runtime/gpu/kernels/sampled_algorithm.hpp"
#include "runtime/gpu/kernels/topk_algorithm.hpp"

namespace hearsay {

template <class Machine>
class DeviceSearch {
 public:
  /// For up to `most` entries of n values.
  DeviceSearch(const Machine& machine, SearchKind kind, std::size_t n, std::size_t most)
      : search_(make(machine, kind, n, most)) {}

  /// r ← r + scale · addend; what is found of it is moved out.
  void add_and_select(Machine& machine, float* r, const float* addend, float scale, std::size_t k, const Search& search,
                      const device::Entries& entries) {
    const auto count = static_cast<std::uint32_t>(k);
    std::visit(
        [&](auto& kernels) {
          if constexpr (std::is_same_v<decltype(kernels), device::TopK<Machine>&>)
            kernels.add_and_select(machine, r, addend, scale, count, entries);
          else
            kernels.add_and_select(machine, r, addend, scale, count, search, entries);
        },
        search_);
  }
  const device::Control* control_block() const {
    return std::visit([](const auto& kernels) { return kernels.memory().control_block(); }, search_);
  }

 private:
  using Any = std::variant<device::TopK<Machine>, device::MsTopK<Machine>, device::SampledTopK<Machine>,
                           device::ChunkedTopK<Machine>>;
  static Any make(const Machine& machine, SearchKind kind, std::size_t n, std::size_t most) {
    switch (kind) {
      case SearchKind::largest:
        return device::TopK<Machine>(machine, n, static_cast<std::uint32_t>(most));
      case SearchKind::bisection:
        return device::MsTopK<Machine>(machine, n);
      case SearchKind::sample:
        return device::SampledTopK<Machine>(machine, n);
      case SearchKind::chunks:
        return device::ChunkedTopK<Machine>(machine, n);
      case SearchKind::none:
        break;
    }
    throw std::logic_error("device search: this selector is the processor's");
  }

  Any search_;
};

}  // namespace hearsay
