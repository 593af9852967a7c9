// The emulated machines: the natural order of threads and blocks, other orders with blocks side by side, and one block.
#include "runtime/gpu/kernels/topk_algorithm.hpp"
#include "runtime/gpu/machine/emulator.hpp"
#include "tests/runtime/gpu/machine_of.hpp"
#include "tests/support/emulated_device.hpp"

namespace hearsay::test {
namespace {

void refuse_if_failed(const device::Control& control, const float* values, std::size_t n) {
  if (control.failed()) refuse_value(control.first_bad, n, values[control.first_bad]);
}

class Emulated {
 public:
  template <class T>
  using Buffer = device::EmulatedBuffer<T>;

  Emulated(std::uint64_t seed, unsigned blocks, unsigned workers)
      : name_("emulated, seed " + std::to_string(seed) + ", " + std::to_string(blocks) + " blocks, " +
              std::to_string(workers) + " at a time"),
        emulator_(seed, blocks, workers) {}
  std::string name() const { return name_; }
  device::Emulator& handle() { return emulator_; }
  void wait() {}

  class Select {
   public:
    Select(Emulated& machine, std::size_t n, std::uint32_t most_k) : n_(n), select_(machine.emulator_, n, most_k) {}
    void run(Emulated& machine, float* values, const float* addend, float scale, std::uint32_t k,
             const device::Entries& entries) {
      select_.add_and_select(machine.emulator_, values, addend, scale, k, entries);
    }
    std::pair<std::uint32_t, bool> outcome(Emulated&, const float* values) const {
      const device::Control control = select_.control();
      refuse_if_failed(control, values, n_);
      return {control.candidates, control.k > 0 && control.from_candidates == 0};
    }

   private:
    std::size_t n_;
    device::TopK<device::Emulator> select_;
  };

  void norms(const float* values, std::span<const device::SegmentRange> segments, double* norms) {
    device::Norms<device::Emulator>(segments).compute(emulator_, values, norms);
  }

 private:
  std::string name_;
  device::Emulator emulator_;
};

}  // namespace

std::vector<std::unique_ptr<Machine>> machines() {
  std::vector<std::unique_ptr<Machine>> all;
  all.push_back(std::make_unique<MachineOf<Emulated>>(Emulated(0, 3, 1)));
  all.push_back(std::make_unique<MachineOf<Emulated>>(Emulated(1, 7, 3)));
  all.push_back(std::make_unique<MachineOf<Emulated>>(Emulated(2, 1, 1)));
  all.push_back(std::make_unique<MachineOf<Emulated>>(Emulated(3, 264, 1)));  // as many blocks as an H200 holds
  return all;
}

std::shared_ptr<Device> replica_device(int rank, std::size_t staging_bytes) {
  return emulated_device(static_cast<std::uint64_t>(rank), staging_bytes == 0 ? 64 : staging_bytes);
}

}  // namespace hearsay::test
