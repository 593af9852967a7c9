#pragma once
// A Machine on top of a Backend, which has:
//   Buffer<T>         memory of the machine
//   handle()          what the functions of the kernels take first
//   Select            the selection
#include <algorithm>

#include "runtime/gpu/kernels/entries_algorithm.hpp"
#include "tests/runtime/gpu/machine.hpp"

namespace hearsay::test {

/// Values on the machine, `shift` floats off its alignment, with a guard on both sides that must stay as it is.
template <class Backend>
class Floats {
 public:
  explicit Floats(std::span<const float> values, unsigned shift = 0)
      : size_(values.size()), shift_(shift), buffer_(guard + shift + values.size() + guard) {
    std::vector<float> all(buffer_.size(), mark);
    std::copy(values.begin(), values.end(), all.begin() + guard + shift);
    buffer_.upload(std::span<const float>(all));
  }
  explicit Floats(std::size_t n, unsigned shift = 0) : Floats(std::vector<float>(n, -77.0F), shift) {}

  float* data() { return buffer_.data() + guard + shift_; }
  std::vector<float> download() const {
    std::vector<float> all(buffer_.size());
    buffer_.download(std::span<float>(all));
    const auto first = all.begin() + guard + shift_, last = first + static_cast<std::ptrdiff_t>(size_);
    const auto is_mark = [](float value) { return value == mark; };
    if (!std::all_of(all.begin(), first, is_mark) || !std::all_of(last, all.end(), is_mark))
      throw std::logic_error("a kernel wrote beyond its values");
    return {first, last};
  }

 private:
  static constexpr int guard = 64;
  static constexpr float mark = 0x1.abcdep-7F;
  std::size_t size_;
  unsigned shift_;
  typename Backend::template Buffer<float> buffer_;
};

template <class Backend, class T>
typename Backend::template Buffer<T> on_machine(std::span<const T> values) {
  typename Backend::template Buffer<T> buffer(values.size());
  buffer.upload(values);
  return buffer;
}

template <class Backend>
class MachineOf final : public Machine {
 public:
  explicit MachineOf(Backend backend) : backend_(std::move(backend)) {}

  std::string name() const override { return backend_.name(); }

  std::unique_ptr<FusedTopK> topk(std::size_t n, std::uint32_t most_k, unsigned shift) override {
    return std::make_unique<Fused>(backend_, n, most_k, shift);
  }

  std::vector<double> norms(std::span<const float> values, std::span<const device::SegmentRange> segments,
                            unsigned shift) override {
    Floats<Backend> there(values, shift);
    Buffer<double> norms(segments.size());
    backend_.norms(there.data(), segments, norms.data());
    return downloaded(norms);
  }

  std::vector<float> mixed(float self_weight, std::span<const float> weights,
                           std::span<const std::vector<float>> copies, std::span<const float> x,
                           unsigned shift) override {
    std::vector<Floats<Backend>> there;
    for (const auto& copy : copies) there.emplace_back(copy, shift);
    std::vector<device::WeightedCopy> edges;
    for (std::size_t e = 0; e < copies.size(); ++e) edges.push_back({there[e].data(), weights[e]});
    Floats<Backend> own(x, shift);
    device::mix_row(backend_.handle(), self_weight, edges, own.data(), x.size());
    backend_.wait();
    return own.download();
  }

  std::vector<float> with_difference(float weight, std::span<const float> theirs, std::span<const float> ours,
                                     std::span<const float> x) override {
    Floats<Backend> a(theirs), b(ours), own(x);
    device::add_difference(backend_.handle(), weight, a.data(), b.data(), own.data(), x.size());
    backend_.wait();
    return own.download();
  }

  std::vector<float> gathered(std::span<const float> block, const Indices& positions) override {
    Floats<Backend> there(block), entries(positions.size());
    auto at = on_machine<Backend>(std::span<const std::uint32_t>(positions));
    device::gather(backend_.handle(), there.data(), at.data(), count_of(positions), entries.data());
    backend_.wait();
    return entries.download();
  }

  std::vector<float> scattered(std::span<const float> block, const Indices& positions,
                               std::span<const float> entries) override {
    Floats<Backend> there(block), from(entries);
    auto at = on_machine<Backend>(std::span<const std::uint32_t>(positions));
    device::scatter(backend_.handle(), from.data(), at.data(), count_of(positions), there.data());
    backend_.wait();
    return there.download();
  }

  std::vector<float> scatter_added(std::span<const float> block, const Indices& positions,
                                   std::span<const float> entries, float scale) override {
    Floats<Backend> there(block), from(entries);
    auto at = on_machine<Backend>(std::span<const std::uint32_t>(positions));
    device::scatter_add(backend_.handle(), scale, from.data(), at.data(), count_of(positions), there.data());
    backend_.wait();
    return there.download();
  }

 private:
  template <class T>
  using Buffer = typename Backend::template Buffer<T>;

  class Fused final : public FusedTopK {
   public:
    Fused(Backend& backend, std::size_t n, std::uint32_t most_k, unsigned shift)
        : backend_(backend), shift_(shift), select_(backend, n, most_k) {}
    Selected add_and_select(std::vector<float>& values, std::span<const float> addend, float scale,
                            std::uint32_t k) override {
      Floats<Backend> there(values, shift_), g(addend, shift_), found(k);
      Buffer<std::uint32_t> positions(k);
      select_.run(backend_, there.data(), g.data(), scale, k, {positions.data(), found.data()});
      const auto [candidates, read_again] = select_.outcome(backend_, there.data());
      values = there.download();
      return {downloaded(positions), found.download(), candidates, read_again};
    }

   private:
    Backend& backend_;
    unsigned shift_;
    typename Backend::Select select_;
  };

  static std::uint32_t count_of(const Indices& positions) { return static_cast<std::uint32_t>(positions.size()); }
  template <class T>
  static std::vector<T> downloaded(const Buffer<T>& buffer) {
    std::vector<T> values(buffer.size());
    buffer.download(std::span<T>(values));
    return values;
  }

  Backend backend_;
};

}  // namespace hearsay::test
