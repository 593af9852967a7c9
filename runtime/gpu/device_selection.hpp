#pragma once
// Selections of changes and of sums on a device, with the kernels of runtime/gpu/kernels/*_algorithm.hpp: that of the
// emulator and that of the GPU. What was found comes to the processor, where codecs write it; nothing else does.
// Cost: that of the kernels, a run of values at a time, for changes 8 n bytes more (x is copied first).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/gpu/device_search.hpp"
#include "runtime/gpu/kernels/entries_algorithm.hpp"
#include "runtime/gpu/kernels/mixing_algorithm.hpp"
#include "runtime/gpu/staging.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/finite.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// Throws: x − copy is not finite at this position of a segment.
[[noreturn]] inline void refuse_change(Device& device, std::span<const float> x, std::span<const float> copy,
                                       std::size_t at) {
  const float value = fetched(device, x.subspan(at, 1)).front() - fetched(device, copy.subspan(at, 1)).front();
  refuse_value(at, x.size(), value);
}

/// Room for positions and values on a device.
template <class Machine>
struct DeviceEntries {
  DeviceEntries() = default;
  explicit DeviceEntries(std::size_t most) : positions(most), values(most) {}
  typename Machine::template Buffer<std::uint32_t> positions;
  typename Machine::template Buffer<float> values;
};

/// The selection of one run of values, and what it found. All of them need no search, and no positions from the device.
template <class Backend>
class DeviceRun {
  using Machine = typename Backend::Machine;

 public:
  DeviceRun(const Sparsifier& sparsifier, std::size_t n)
      : n_(n),
        kind_(sparsifier.selector->search_kind()),
        most_(sparsifier.selector->most(kept_count(sparsifier.largest_density(), n), n)) {}

  /// r ← r + scale · addend; what `search` finds of it for k is moved out, all are left where they are.
  void begin(Machine& machine, float* r, const float* addend, float scale, std::size_t k, const Search& search) {
    positions.resize(k == n_ || kind_ != SearchKind::sample ? k : most_);
    all_ = k == n_ ? r : nullptr;
    if (all_ != nullptr) {
      const device::WeightedCopy edge{addend, scale};
      device::mix_row(machine, 1.0F, std::span(&edge, 1), r, n_);
      return;
    }
    if (!search_) search_ = std::make_unique<Found>(machine, kind_, n_, most_);
    search_->select.add_and_select(machine, r, addend, scale, k, search,
                                   {search_->found.positions.data(), search_->found.values.data()});
  }
  bool took_all() const { return all_ != nullptr; }
  /// The values at the positions found ← those of another block.
  void replace_values(Machine& machine, const float* block) {
    if (took_all()) {
      all_ = block;
      return;
    }
    device::gather(machine, block, search_->found.positions.data(), static_cast<std::uint32_t>(positions.size()),
                   search_->found.values.data());
  }
  void bring(Staging<Backend>& staging) {
    values.resize(positions.size());
    if (took_all()) {
      std::iota(positions.begin(), positions.end(), 0U);
      staging.bring(all_, std::as_writable_bytes(std::span(values)));
      return;
    }
    bring_positions(staging);
    staging.bring(search_->found.values.data(), std::as_writable_bytes(std::span(values)));
    staging.bring(search_->select.control_block(), std::as_writable_bytes(std::span(&control_, 1)));
  }
  // After a run that has not taken all: what goes on on the device, and the positions alone.
  const float* found_values() const { return search_->found.values.data(); }
  const std::uint32_t* found_positions() const { return search_->found.positions.data(); }
  /// The first position whose value was not finite.
  const std::uint32_t* failed() const { return &search_->select.control_block()->first_bad; }
  void bring_positions(Staging<Backend>& staging) {
    staging.bring(found_positions(), std::as_writable_bytes(std::span(positions)));
  }
  /// Once these have come, if all were finite: where a search decides how many there are, these alone.
  void leave_out_others() {
    if (took_all() || kind_ != SearchKind::sample) return;
    positions.resize(control_.found), values.resize(control_.found);
  }
  /// Once these have come: the first position whose value was not finite.
  std::optional<std::size_t> first_bad() const {
    if (took_all()) {
      const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
      if (bad == values.end()) return std::nullopt;
      return static_cast<std::size_t>(bad - values.begin());
    }
    if (control_.first_bad == device::no_position) return std::nullopt;
    return control_.first_bad;
  }

  std::vector<std::uint32_t> positions;
  std::vector<float> values;

 private:
  struct Found {
    Found(Machine& machine, SearchKind kind, std::size_t n, std::size_t most)
        : select(machine, kind, n, most), found(most) {
      const std::vector<std::uint32_t> zeros(most);  // positions of the run, also where a selection has failed
      found.positions.upload(std::span<const std::uint32_t>(zeros));
    }
    DeviceSearch<Machine> select;
    DeviceEntries<Machine> found;
  };

  std::size_t n_;
  SearchKind kind_;
  std::size_t most_;
  std::unique_ptr<Found> search_;  // once it is needed
  const float* all_ = nullptr;     // where all values are, if all were asked for
  device::Control control_;
};

/// r ← x − x̂ and the selection among r are one pass.
template <class Backend>
class DeviceChanges final : public ChangeSelection {
 public:
  DeviceChanges(Device& device, Backend& backend, Staging<Backend>& staging, const Layout& layout,
                const Sparsifier& sparsifier)
      : device_(device), backend_(backend), staging_(staging), sparsifier_(sparsifier), runs_(layout.count()) {
    std::size_t longest = 0;
    for (const Segment& s : layout.segments()) longest = std::max(longest, s.length);
    changes_ = Buffer(longest);
  }
  ~DeviceChanges() override { wait_before_leaving(device_); }
  DeviceChanges(const DeviceChanges&) = delete;
  DeviceChanges& operator=(const DeviceChanges&) = delete;

  void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t k, float zone) override {
    const auto use = backend_.use();
    Asked& asked = runs_[s];
    asked.x = x, asked.copy = copy, asked.zone = zone;
    if (!asked.run) asked.run = std::make_unique<DeviceRun<Backend>>(sparsifier_, x.size());
    backend_.copy(x.data(), changes_.data(), x.size_bytes());
    asked.run->begin(backend_.machine(), changes_.data(), copy.data(), -1.0F, k,
                     sparsifier_.selector->next_search(k, x.size()));
    if (sparsifier_.codec->exact()) asked.run->replace_values(backend_.machine(), x.data());
    asked.run->bring(staging_);
  }
  void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    Asked& asked = runs_[s];
    if (const auto bad = asked.run->first_bad()) refuse_change(device_, asked.x, asked.copy, *bad);
    asked.run->leave_out_others();
    if (asked.zone > 0.0F) leave_out_below(asked.zone, *asked.run);
    positions.swap(asked.run->positions);
    values.swap(asked.run->values);
  }

 private:
  /// What is smaller is no news.
  static void leave_out_below(float zone, DeviceRun<Backend>& run) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < run.positions.size(); ++i) {
      if (std::abs(run.values[i]) < zone) continue;
      run.positions[kept] = run.positions[i];
      run.values[kept++] = run.values[i];
    }
    run.positions.resize(kept), run.values.resize(kept);
  }

  using Buffer = typename Backend::Machine::template Buffer<float>;
  struct Asked {
    std::unique_ptr<DeviceRun<Backend>> run;
    std::span<const float> x, copy;
    float zone = 0.0F;
  };

  Device& device_;
  Backend& backend_;
  Staging<Backend>& staging_;
  const Sparsifier& sparsifier_;
  std::vector<Asked> runs_;
  Buffer changes_;  // of one segment at a time
};

/// One run of all values, or one a segment.
template <class Backend>
class DeviceSums final : public SumSelection {
 public:
  DeviceSums(Device& device, Backend& backend, Staging<Backend>& staging, const Layout& layout,
             const Sparsifier& sparsifier)
      : device_(device), backend_(backend), staging_(staging), layout_(layout), sparsifier_(sparsifier) {
    if (!sparsifier.per_segment) {
      add_part(0, layout.size());
    } else {
      for (const Segment& s : layout.segments()) add_part(s.offset, s.length);
    }
  }
  ~DeviceSums() override { wait_before_leaving(device_); }
  DeviceSums(const DeviceSums&) = delete;
  DeviceSums& operator=(const DeviceSums&) = delete;

  void take(std::span<float> r, std::span<const float> addend, float scale, double density,
            std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    const auto use = backend_.use();
    for (Part& part : parts_) {
      const std::size_t k = kept(density, part.length);
      part.run->begin(backend_.machine(), r.data() + part.offset, addend.data() + part.offset, scale, k,
                      search(k, part.length));
      part.run->bring(staging_);
    }
    staging_.wait();
    positions.clear(), values.clear();
    for (const Part& part : parts_) {
      if (const auto bad = part.run->first_bad()) refuse(r, part.offset + *bad);
      part.run->leave_out_others();
      if (part.run->took_all()) backend_.clear(r.data() + part.offset, part.length * sizeof(float));
      for (const std::uint32_t position : part.run->positions)
        positions.push_back(static_cast<std::uint32_t>(part.offset + position));
      values.insert(values.end(), part.run->values.begin(), part.run->values.end());
    }
  }

 private:
  struct Part {
    std::size_t offset, length;
    std::unique_ptr<DeviceRun<Backend>> run;
  };
  std::size_t kept(double density, std::size_t n) const {
    return n < sparsifier_.dense_below ? n : kept_count(density, n);
  }
  /// Segments that are sent whole are not searched; what would not have been drawn is not.
  Search search(std::size_t k, std::size_t n) const {
    return sparsifier_.per_segment && k == n ? Search{} : sparsifier_.selector->next_search(k, n);
  }
  void add_part(std::size_t offset, std::size_t length) {
    parts_.push_back({offset, length, std::make_unique<DeviceRun<Backend>>(sparsifier_, length)});
  }
  [[noreturn]] void refuse(std::span<const float> r, std::size_t at) {
    const std::vector<float> here = fetched(device_, r);
    name_segment(layout_, 0, here, "gradient", DivergenceError("value " + std::to_string(at) + " is not finite"));
  }

  Device& device_;
  Backend& backend_;
  Staging<Backend>& staging_;
  const Layout& layout_;
  const Sparsifier& sparsifier_;
  std::vector<Part> parts_;
};

}  // namespace hearsay
