// The processor as a Device: every pass is done when its call returns, on the caller's thread.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/replica/block_selection.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/replica/mixing_passes.hpp"
#include "sparsify/magnitude.hpp"
#include "sparsify/search/positions.hpp"
#include "sparsify/sparsify.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

void close(float weight, float& theirs, float& ours) {
  const float move = weight * (theirs - ours);
  theirs -= move;
  ours += move;
}

/// Chooses when it is asked what was chosen: one segment's changes are all that is kept.
class ProcessorSelection final : public ChangeSelection {
 public:
  ProcessorSelection(const Layout& layout, const Sparsifier& sparsifier)
      : sparsifier_(sparsifier), asked_(layout.count()) {}

  void begin(SegmentId s, std::span<const float> x, std::span<const float> copy, std::size_t k, float zone) override {
    asked_[s] = {x, copy, k, zone};
  }
  void take(SegmentId s, std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    const auto [x, copy, k, zone] = asked_[s];
    change_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) change_[i] = x[i] - copy[i];
    select(k, zone, positions);
    const auto source = sparsifier_.codec->exact() ? x : std::span<const float>(change_);
    values.resize(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) values[i] = source[positions[i]];
  }

 private:
  struct Asked {
    std::span<const float> x, copy;
    std::size_t k = 0;
    float zone = 0.0F;
  };
  void select(std::size_t k, float zone, std::vector<std::uint32_t>& positions) {
    if (!sparsifier_.dense || zone == 0.0F) {
      sparsifier_.selector->select(change_, k, positions);
      std::erase_if(positions, [&](std::uint32_t i) { return std::abs(change_[i]) < zone; });
      return;
    }
    positions.clear();
    collect_from(magnitude_bits(zone), change_, positions);
    for (const std::uint32_t i : positions)
      if (!std::isfinite(change_[i])) refuse_value(i, change_.size(), change_[i]);
  }

  const Sparsifier& sparsifier_;
  std::vector<Asked> asked_;
  std::vector<float> change_;
};

class ProcessorSums final : public SumSelection {
 public:
  ProcessorSums(const Layout& layout, const Sparsifier& sparsifier) : selection_(sparsifier, layout) {}

  void take(std::span<float> r, std::span<const float> addend, float scale, double density,
            std::vector<std::uint32_t>& positions, std::vector<float>& values) override {
    selection_.add_and_select(r, addend, scale, density, positions);
    values.resize(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) values[i] = std::exchange(r[positions[i]], 0.0F);
  }

 private:
  BlockSelection selection_;
};

class Processor final : public Device {
 public:
  explicit Processor(int threads) : threads_(threads) {}
  bool is_processor() const override { return true; }

  FloatBlock block(std::size_t length) override { return FloatBlock(length); }
  void copy(std::span<const float> from, std::span<float> to) override { std::ranges::copy(from, to.begin()); }
  void clear(std::span<float> block) override { std::ranges::fill(block, 0.0F); }
  void fetch(std::span<const float> values, std::span<std::byte> here) override {
    if (!values.empty()) std::memcpy(here.data(), values.data(), values.size_bytes());
  }
  void put(std::span<const std::byte> here, std::span<float> values) override {
    if (!here.empty()) std::memcpy(values.data(), here.data(), here.size());
  }

  Norms norms(const Layout& layout) override {
    return [&layout](std::span<const float> x, std::span<double> norms) {
      SegmentId s = 0;
      for (const Segment& segment : layout.segments()) norms[s++] = norm(x.subspan(segment.offset, segment.length));
    };
  }
  ChangeNorms change_norms(const Layout& layout) override {
    return [&layout](std::span<const float> x, std::span<const float> y, std::span<double> norms) {
      SegmentId s = 0;
      for (const Segment& segment : layout.segments()) {
        norms[s++] =
            norm_of_difference(x.subspan(segment.offset, segment.length), y.subspan(segment.offset, segment.length));
      }
    };
  }
  ChangeNorms largest_changes(const Layout& layout) override {
    return [&layout](std::span<const float> x, std::span<const float> y, std::span<double> largest) {
      SegmentId s = 0;
      for (const Segment& segment : layout.segments()) {
        largest[s++] =
            largest_difference(x.subspan(segment.offset, segment.length), y.subspan(segment.offset, segment.length));
      }
    };
  }
  void mix_row(float self_weight, std::span<const MixEdge> edges, std::span<float> x) override {
    hearsay::mix_row(self_weight, edges, x, threads_);
  }
  void add_differences(float step, std::span<const MixEdge> edges, std::span<float> x) override {
    hearsay::add_differences(step, edges, x, threads_);
  }
  void add_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                      std::span<float> x) override {
    hearsay::add_difference(weight, theirs, ours, x);
  }
  void add_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<const float> theirs,
                         std::span<const float> ours, std::span<float> x) override {
    for (const std::uint32_t i : positions) x[i] += weight * (theirs[i] - ours[i]);
  }
  void close_difference(float weight, std::span<float> theirs, std::span<float> ours) override {
    for (std::size_t i = 0; i < ours.size(); ++i) close(weight, theirs[i], ours[i]);
  }
  void close_difference_at(std::span<const std::uint32_t> positions, float weight, std::span<float> theirs,
                           std::span<float> ours) override {
    for (const std::uint32_t i : positions) close(weight, theirs[i], ours[i]);
  }

  void divide(float by, std::span<float> x) override {
    for (float& value : x) value /= by;
  }
  void add_momentum(float momentum, bool nesterov, float scale, std::span<float> g, std::span<float> u) override {
    for (std::size_t i = 0; i < g.size(); ++i) {
      const float step = scale * g[i];
      u[i] = nesterov ? momentum * (u[i] + step) : momentum * u[i] + step;
      g[i] = nesterov ? u[i] + step : u[i];
    }
  }

  std::unique_ptr<ChangeSelection> select_changes(const Layout& layout, const Sparsifier& sparsifier) override {
    return std::make_unique<ProcessorSelection>(layout, sparsifier);
  }
  std::unique_ptr<SumSelection> select_sums(const Layout& layout, const Sparsifier& sparsifier) override {
    return std::make_unique<ProcessorSums>(layout, sparsifier);
  }
  void set_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    for (std::size_t i = 0; i < positions.size(); ++i) block[positions[i]] = here[i];
  }
  void add_entries(std::span<const std::uint32_t> positions, std::span<const float> here,
                   std::span<float> block) override {
    for (std::size_t i = 0; i < positions.size(); ++i) block[positions[i]] += here[i];
  }

 private:
  int threads_;
};

}  // namespace

std::shared_ptr<Device> processor(int threads) { return std::make_shared<Processor>(threads); }

}  // namespace hearsay
