// The GPU as a machine.
#include "apps/bench/cuda/entries.hpp"
#include "apps/bench/cuda/mixing.hpp"
#include "apps/bench/cuda/norms.hpp"
#include "apps/bench/cuda/select.hpp"
#include "runtime/gpu/cuda.hpp"
#include "runtime/gpu/machine/memory.hpp"
#include "tests/runtime/gpu/machine_of.hpp"

namespace hearsay::test {
namespace {

class OnDevice {
 public:
  template <class T>
  using Buffer = device::DeviceBuffer<T>;

  std::string name() const { return device::device_name(); }
  device::StreamHandle handle() const { return stream_.handle(); }
  void wait() { device::synchronize(handle()); }

  class Select {
   public:
    Select(OnDevice&, std::size_t n, std::uint32_t most_k) : select_(n, most_k) {}
    void run(OnDevice& machine, float* values, const float* addend, float scale, std::uint32_t k,
             const device::Entries& entries) {
      select_.add_and_select(machine.handle(), values, addend, scale, k, entries);
    }
    std::pair<std::uint32_t, bool> outcome(OnDevice& machine, const float* values) const {
      const device::Outcome outcome = select_.outcome(machine.handle(), values);
      return {outcome.candidates, outcome.read_again};
    }

   private:
    device::DeviceTopK select_;
  };

  void norms(const float* values, std::span<const device::SegmentRange> segments, double* norms) {
    device::DeviceNorms plan(segments);
    plan.compute(handle(), values, norms);
    wait();
  }

 private:
  device::Stream stream_;
};

}  // namespace

std::vector<std::unique_ptr<Machine>> machines() {
  std::vector<std::unique_ptr<Machine>> all;
  all.push_back(std::make_unique<MachineOf<OnDevice>>(OnDevice()));
  return all;
}

std::shared_ptr<Device> replica_device(int, std::size_t staging_bytes) {
  return cuda_device(0, staging_bytes == 0 ? 1024 : staging_bytes);
}

}  // namespace hearsay::test
