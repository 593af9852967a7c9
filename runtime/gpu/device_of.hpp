#pragma once
// A Device out of the kernels of runtime/gpu/kernels: the GPU's (cuda.cu), and the emulated one's that the exchanges
// are tested on. A Backend has
//   Machine, machine()                what the kernels run on, one after the other (runtime/gpu/machine/block.hpp)
//   auto use()                        to be held while the device is spoken to
//   block(n)                          n zeros, a FloatBlock
//   Pinned pinned(bytes)              processor memory for copies; span()
//   read(there, here), write(here, there), copy(from, to, bytes), clear(to, bytes)
//                                     in the order of the kernels; do not wait
//   pin(here)                         such memory may be `here` of a read or write as long as the shared_ptr lives
//                                     that comes back; null: it may not
//   wait()                            for all of it
//   beside(), follow(earlier)         another one on the same device, with an order of its own; what `earlier` has been
//                                     given so far is done before what this one is given from now on
//   begin_compute(), end_compute()    as Device's
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/gpu/device_events.hpp"
#include "runtime/gpu/device_lane.hpp"
#include "runtime/gpu/device_quantiser.hpp"
#include "runtime/gpu/device_selection.hpp"
#include "runtime/gpu/kernels/entries_algorithm.hpp"
#include "runtime/gpu/kernels/largest_algorithm.hpp"
#include "runtime/gpu/kernels/mixing_algorithm.hpp"
#include "runtime/gpu/kernels/momentum_algorithm.hpp"
#include "runtime/gpu/kernels/norms_algorithm.hpp"
#include "runtime/gpu/pinned_memories.hpp"
#include "runtime/gpu/staging.hpp"
#include "runtime/replica/mixing_passes.hpp"

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
  void clear(std::span<float> block) override {
    const auto use = backend_.use();
    backend_.clear(block.data(), block.size_bytes());
  }
  void fetch(std::span<const float> values, std::span<std::byte> here) override {
    const auto use = backend_.use();
    if (pinned_->covers(here)) return backend_.read(reinterpret_cast<const std::byte*>(values.data()), here);
    staging_.bring(values.data(), here);
  }
  void put(std::span<const std::byte> here, std::span<float> values) override {
    const auto use = backend_.use();
    if (pinned_->covers(here)) return backend_.write(here, reinterpret_cast<std::byte*>(values.data()));
    staging_.send(here, values.data());
  }
  void wait() override {
    const auto use = backend_.use();
    staging_.wait();
  }

  std::shared_ptr<void> pin(std::span<std::byte> here) override {
    auto memory = here.empty() ? nullptr : backend_.pin(here);
    if (!memory) return nullptr;
    return std::make_shared<Pin>(pinned_, here, std::move(memory));
  }

  Norms norms(const Layout& layout) override {
    return [this, plan = norms_plan(layout)](std::span<const float> x, std::span<double> norms) {
      const auto use = backend_.use();
      plan->norms.compute(backend_.machine(), x.data(), plan->found.data());
      bring(plan->found, norms);
    };
  }
  ChangeNorms change_norms(const Layout& layout) override {
    return
        [this, plan = norms_plan(layout)](std::span<const float> x, std::span<const float> y, std::span<double> norms) {
          const auto use = backend_.use();
          plan->norms.compute_of_difference(backend_.machine(), x.data(), y.data(), plan->found.data());
          bring(plan->found, norms);
        };
  }
  ChangeNorms largest_changes(const Layout& layout) override {
    const auto use = backend_.use();
    auto plan = std::make_shared<LargestPlan>(
        LargestPlan{device::LargestChanges<Machine>(ranges_of(layout)), Buffer<double>(layout.count())});
    return [this, plan](std::span<const float> x, std::span<const float> y, std::span<double> largest) {
      const auto used = backend_.use();
      plan->changes.compute(backend_.machine(), x.data(), y.data(), plan->found.data());
      bring(plan->found, largest);
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
  void add_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<const float> theirs,
                         std::span<const float> ours, std::span<float> x) override {
    if (positions.size() == x.size()) return add_difference(weight, theirs, ours, x);
    const auto use = backend_.use();
    send_positions(positions);
    device::add_difference_at(backend_.machine(), weight, theirs.data(), ours.data(), entries_.positions.data(),
                              count(positions), x.data());
  }
  void close_difference(float weight, std::span<float> theirs, std::span<float> ours) override {
    const auto use = backend_.use();
    device::close_difference(backend_.machine(), weight, theirs.data(), ours.data(), ours.size());
  }
  void close_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<float> theirs,
                           std::span<float> ours) override {
    if (positions.size() == ours.size()) return close_difference(weight, theirs, ours);
    const auto use = backend_.use();
    send_positions(positions);
    device::close_difference_at(backend_.machine(), weight, theirs.data(), ours.data(), entries_.positions.data(),
                                count(positions));
  }

  void divide(float by, std::span<float> x) override {
    const auto use = backend_.use();
    device::divide(backend_.machine(), by, x.data(), x.size());
  }
  void add_momentum(float momentum, bool nesterov, float scale, std::span<float> g, std::span<float> u) override {
    const auto use = backend_.use();
    device::add_momentum(backend_.machine(), momentum, nesterov, scale, g.data(), u.data(), g.size());
  }

  std::unique_ptr<ChangeSelection> select_changes(const Layout& layout, const Sparsifier& sparsifier) override {
    const auto use = backend_.use();
    if (sparsifier.dense && counts_in_steps(sparsifier))
      return std::make_unique<DeviceEvents<Backend>>(*this, backend_, staging_, layout, ranges_of(layout));
    return std::make_unique<DeviceChanges<Backend>>(*this, backend_, staging_, layout, sparsifier);
  }
  std::unique_ptr<ChangeQuantiser> quantise_changes(const Layout& layout, const Sparsifier& sparsifier) override {
    const auto use = backend_.use();
    if (!gpus_quantise(sparsifier)) return nullptr;
    return device::with_code<std::unique_ptr<ChangeQuantiser>>(
        sparsifier.codec->group_code(), [&]<class Code>(Code) -> std::unique_ptr<ChangeQuantiser> {
          return std::make_unique<DeviceQuantiser<Backend, Code>>(*this, backend_, staging_, layout, sparsifier);
        });
  }
  std::unique_ptr<SumSelection> select_sums(const Layout& layout, const Sparsifier& sparsifier) override {
    const auto use = backend_.use();
    return std::make_unique<DeviceSums<Backend>>(*this, backend_, staging_, layout, sparsifier);
  }
  void set_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    if (are_all(positions, block)) return put(std::as_bytes(here), block);
    const auto use = backend_.use();
    send_entries(positions, here);
    device::scatter(backend_.machine(), entries_.values.data(), entries_.positions.data(), count(positions),
                    block.data());
  }
  void add_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    const auto use = backend_.use();
    if (are_all(positions, block)) {
      send_values(here);
      const device::WeightedCopy edge{entries_.values.data(), 1.0F};
      return device::mix_row(backend_.machine(), 1.0F, std::span(&edge, 1), block.data(), block.size());
    }
    send_entries(positions, here);
    device::scatter_add(backend_.machine(), 1.0F, entries_.values.data(), entries_.positions.data(), count(positions),
                        block.data());
  }

  std::unique_ptr<Lane> lane(std::size_t most) override {
    const auto use = backend_.use();
    return std::make_unique<DeviceLane<Backend>>(backend_, most);
  }

  void begin_compute() override { backend_.begin_compute(); }
  void end_compute() override { backend_.end_compute(); }

 private:
  using Machine = typename Backend::Machine;
  template <class T>
  using Buffer = typename Machine::template Buffer<T>;

  /// Changes count in steps of one length, and those within the dead zone are no news.
  static bool counts_in_steps(const Sparsifier& sparsifier) {
    return sparsifier.codec && sparsifier.codec->step_rule();
  }

  struct LargestPlan {
    device::LargestChanges<Machine> changes;
    Buffer<double> found;
  };
  struct NormsPlan {
    device::Norms<Machine> norms;
    Buffer<double> found;
  };
  std::shared_ptr<NormsPlan> norms_plan(const Layout& layout) {
    const auto use = backend_.use();
    const std::vector<device::SegmentRange> ranges = ranges_of(layout);
    return std::make_shared<NormsPlan>(NormsPlan{device::Norms<Machine>(ranges), Buffer<double>(ranges.size())});
  }
  static std::vector<device::SegmentRange> ranges_of(const Layout& layout) {
    std::vector<device::SegmentRange> ranges;
    for (const Segment& s : layout.segments()) ranges.push_back({s.offset, s.length});
    return ranges;
  }
  /// Waits for it.
  void bring(Buffer<double>& found, std::span<double> here) {
    staging_.bring(found.data(), std::as_writable_bytes(here));
    staging_.wait();
  }

  static std::uint32_t count(std::span<const std::uint32_t> positions) {
    return static_cast<std::uint32_t>(positions.size());
  }
  /// All positions in their order, which need not be sent.
  static bool are_all(std::span<const std::uint32_t> positions, std::span<const float> block) {
    return positions.size() == block.size() && std::ranges::is_sorted(positions);
  }
  /// Makes room for so many entries.
  void need_entries(std::size_t entries) {
    if (entries <= entries_.positions.size()) return;
    staging_.wait();                                           // passes under way read the old ones
    entries_ = DeviceEntries<Machine>(entries + entries / 4);  // to ask for memory holds up the whole device
  }
  void send_positions(std::span<const std::uint32_t> positions) {
    need_entries(positions.size());
    staging_.send(std::as_bytes(positions), entries_.positions.data());
  }
  void send_values(std::span<const float> here) {
    need_entries(here.size());
    staging_.send(std::as_bytes(here), entries_.values.data());
  }
  void send_entries(std::span<const std::uint32_t> positions, std::span<const float> here) {
    send_positions(positions);
    send_values(here);
  }

  std::shared_ptr<PinnedMemories> pinned_ = std::make_shared<PinnedMemories>();
  Backend backend_;
  Staging<Backend> staging_;
  DeviceEntries<Machine> entries_;
};

}  // namespace hearsay
