#include "apps/bench/cuda/select.hpp"

#include <span>

#include "runtime/gpu/machine/gpu.cuh"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay::device {
namespace {

void refuse_if_failed(const Control& control, const float* values, std::uint64_t n) {
  if (control.first_bad == no_position) return;
  float value = 0.0F;
  check(cudaMemcpy(&value, values + control.first_bad, sizeof value, cudaMemcpyDeviceToHost));
  refuse_value(control.first_bad, n, value);
}

}  // namespace

struct DeviceTopK::State {
  State(Gpu gpu, std::uint64_t size, std::uint32_t most) : n(size), most_k(most), select(gpu, size, most) {}
  std::uint64_t n;
  std::uint32_t most_k;
  TopK<Gpu> select;
};

DeviceTopK::DeviceTopK(std::uint64_t n, std::uint32_t most_k) {
  require_selectable(most_k, n);
  state_ = std::make_unique<State>(Gpu(), n, most_k);
}
DeviceTopK::~DeviceTopK() = default;
DeviceTopK::DeviceTopK(DeviceTopK&&) noexcept = default;
DeviceTopK& DeviceTopK::operator=(DeviceTopK&&) noexcept = default;

void DeviceTopK::add_and_select(StreamHandle stream, float* values, const float* addend, float scale, std::uint32_t k,
                                const Entries& entries) {
  require_selectable(k, state_->most_k);
  Gpu gpu(stream);
  state_->select.add_and_select(gpu, values, addend, scale, k, entries);
}

Outcome DeviceTopK::outcome(StreamHandle stream, const float* values) const {
  synchronize(stream);
  const Control control = state_->select.control();
  refuse_if_failed(control, values, state_->n);
  return {.candidates = control.candidates, .read_again = control.k > 0 && control.from_candidates == 0};
}

}  // namespace hearsay::device
