#pragma once
// A Device out of the kernels of runtime/cuda, sparsify/cuda and trigger/cuda: the GPU's (cuda.cu), and the emulated one's
// that the exchanges are tested on. A Backend has
//   Machine, machine()                what the kernels run on, one after the other (runtime/cuda/block.hpp)
//   auto use()                        to be held while the device is spoken to
//   block(n)                          n zeros, a FloatBlock
//   Pinned pinned(bytes)              processor memory for copies; span()
//   read(there, place), write(place, there), copy(from, to, bytes)     in the order of the kernels; do not wait
//   wait()                            for all of it
//   begin_compute(), end_compute()    as Device's
// What travels from one segment takes a handful of launches, which is what counts below about a million values.
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "runtime/algorithms/neighbour/mixing/mixing.hpp"
#include "runtime/cuda/mixing_algorithm.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/staging.hpp"
#include "sparsify/cuda/entries_algorithm.hpp"
#include "sparsify/cuda/topk_algorithm.hpp"
#include "sparsify/sparsify.hpp"
#include "trigger/cuda/norms_algorithm.hpp"

namespace hearsay {

template <class Backend>
class DeviceOf final : public Device {
 public:
  DeviceOf(Backend backend, std::size_t staging_bytes)
      : backend_(std::move(backend)), staging_(backend_, staging_bytes) {}
  DeviceOf(const DeviceOf&) = delete;  // the staging refers to the backend
  DeviceOf& operator=(const DeviceOf&) = delete;

  FloatBlock block(std::size_t length) override { return backend_.block(length); }
  void copy(std::span<const float> from, std::span<float> to) override {
    const auto use = backend_.use();
    backend_.copy(from.data(), to.data(), from.size_bytes());
  }
  void fetch(std::span<const float> values, std::span<std::byte> here) override {
    const auto use = backend_.use();
    staging_.bring(values.data(), here);
  }
  void put(std::span<const std::byte> here, std::span<float> values) override {
    const auto use = backend_.use();
    staging_.send(here, values.data());
  }
  void wait() override {
    const auto use = backend_.use();
    staging_.wait();
  }

  Norms norms(const Layout& layout) override {
    const auto use = backend_.use();
    struct Plan {
      device::Norms<Machine> norms;
      Buffer<double> found;
    };
    std::vector<device::SegmentRange> ranges;
    for (const Segment& s : layout.segments()) ranges.push_back({s.offset, s.length});
    auto plan = std::make_shared<Plan>(Plan{device::Norms<Machine>(ranges), Buffer<double>(ranges.size())});
    return [this, plan](std::span<const float> x, std::span<double> norms) {
      const auto here = backend_.use();
      plan->norms.compute(backend_.machine(), x.data(), plan->found.data());
      staging_.bring(plan->found.data(), std::as_writable_bytes(norms));
      staging_.wait();
    };
  }
  void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) override {
    const auto use = backend_.use();
    std::vector<device::WeightedCopy> copies;
    for (const MixEdge& edge : edges) copies.push_back({edge.theirs.data(), edge.weight});
    device::mix_row(backend_.machine(), self_weight, copies, x.data(), x.size());
  }
  void add_differences(float step, std::span<const MixEdge> edges, std::span<float> x) override {
    for (const MixEdge& edge : edges) add_difference(step * edge.weight, edge.theirs, edge.ours, x);
  }
  void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                      std::span<float> x) override {
    const auto use = backend_.use();
    device::add_difference(backend_.machine(), weight, theirs.data(), ours.data(), x.data(), x.size());
  }

  bool selects(const Sparsifier& sparsifier) const override { return sparsifier.dense || sparsifier.name == "topk"; }
  std::unique_ptr<ChangeSelection> select_changes(const Layout& layout, const Sparsifier& sparsifier) override {
    return std::make_unique<Selection>(*this, layout, sparsifier);
  }
  void set_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    const auto use = backend_.use();
    send_entries(positions, here);
    device::scatter(backend_.machine(), entries_.values.data(), entries_.positions.data(), count(positions),
                    block.data());
  }
  void add_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    const auto use = backend_.use();
    send_entries(positions, here);
    device::scatter_add(backend_.machine(), 1.0F, entries_.values.data(), entries_.positions.data(), count(positions),
                        block.data());
  }

  void begin_compute() override { backend_.begin_compute(); }
  void end_compute() override { backend_.end_compute(); }

 private:
  using Machine = typename Backend::Machine;
  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  /// Positions and values on the device.
  struct Entries {
    Entries() = default;
    explicit Entries(std::size_t most) : positions(most), values(most) {}
    Buffer<std::uint32_t> positions;
    Buffer<float> values;
  };

  /// Top-k of changes: r ← x − x̂ and the selection among r are one pass (sparsify/cuda/topk_algorithm.hpp).
  class Selection final : public ChangeSelection {
   public:
    Selection(DeviceOf& device, const Layout& layout, const Sparsifier& sparsifier)
        : device_(device), sparsifier_(sparsifier), runs_(layout.count()) {
      std::size_t longest = 0;
      for (const Segment& s : layout.segments()) longest = std::max(longest, s.length);
      changes_ = Buffer<float>(longest);
    }
    ~Selection() override { device_.wait(); }  // passes under way write into its memory
    Selection(const Selection&) = delete;
    Selection& operator=(const Selection&) = delete;

    void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t k) override {
      const auto use = device_.backend_.use();
      Run& run = runs_[s];
      if (!run.select) prepare(run, x.size());
      run.x = x, run.copy = copy;
      run.positions.resize(k), run.values.resize(k);
      Machine& machine = device_.backend_.machine();
      device_.backend_.copy(x.data(), changes_.data(), x.size_bytes());
      run.select->add_and_select(machine, changes_.data(), copy.data(), -1.0F, static_cast<std::uint32_t>(k),
                                 {run.found.positions.data(), run.found.values.data()});
      if (sparsifier_.codec->exact())
        device::gather(machine, x.data(), run.found.positions.data(), static_cast<std::uint32_t>(k),
                       run.found.values.data());
      bring(run);
    }
    void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
      Run& run = runs_[s];
      if (run.control.failed()) refuse(run);
      positions.swap(run.positions);
      values.swap(run.values);
    }

   private:
    /// The selection of one segment, and what it found.
    struct Run {
      std::optional<device::TopK<Machine>> select;
      Entries found;
      std::span<const float> x, copy;
      std::vector<std::uint32_t> positions;
      std::vector<float> values;
      device::Control control;
    };
    void prepare(Run& run, std::size_t n) {
      const std::size_t most = kept_count(sparsifier_.largest_density(), n);
      run.select.emplace(device_.backend_.machine(), n, static_cast<std::uint32_t>(most));
      run.found = Entries(most);
      const std::vector<std::uint32_t> zeros(most);  // positions within the segment, also if a selection fails
      run.found.positions.upload(std::span<const std::uint32_t>(zeros));
    }
    void bring(Run& run) {
      Staging<Backend>& staging = device_.staging_;
      staging.bring(run.found.positions.data(), std::as_writable_bytes(std::span(run.positions)));
      staging.bring(run.found.values.data(), std::as_writable_bytes(std::span(run.values)));
      staging.bring(run.select->control_block(), std::as_writable_bytes(std::span(&run.control, 1)));
    }
    [[noreturn]] void refuse(const Run& run) {
      const std::size_t at = run.control.first_bad;
      const float change =
          fetched(device_, run.x.subspan(at, 1)).front() - fetched(device_, run.copy.subspan(at, 1)).front();
      refuse_value(at, run.x.size(), change);
    }

    DeviceOf& device_;
    const Sparsifier& sparsifier_;
    std::vector<Run> runs_;
    Buffer<float> changes_;  // of one segment at a time
  };

  static std::uint32_t count(std::span<const std::uint32_t> positions) {
    return static_cast<std::uint32_t>(positions.size());
  }
  void send_entries(std::span<const std::uint32_t> positions, std::span<const float> here) {
    if (positions.size() > entries_.positions.size()) {
      staging_.wait();  // passes under way read the old ones
      entries_ = Entries(positions.size());
    }
    staging_.send(std::as_bytes(positions), entries_.positions.data());
    staging_.send(std::as_bytes(here), entries_.values.data());
  }

  Backend backend_;
  Staging<Backend> staging_;
  Entries entries_;
};

}  // namespace hearsay
