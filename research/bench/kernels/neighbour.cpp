// The passes of the neighbour path: segment norms with trigger decisions, and mixing.
#include <algorithm>
#include <array>
#include <memory>

#include "base/loops/parts.hpp"
#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/reads.hpp"
#include "research/bench/kernels/suite.hpp"
#include "runtime/exchange/neighbour/mixing/mixing.hpp"
#include "trigger/trigger.hpp"

namespace hearsay {
namespace {

/// The lengths of ResNet-18's 62 parameter tensors (CIFAR's stem, 10 classes; He et al. 2016): 11,173,962 values.
std::vector<std::size_t> resnet18_lengths() {
  std::vector<std::size_t> lengths{64 * 3 * 9, 64, 64};
  std::size_t inputs = 64;
  for (const std::size_t outputs : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      lengths.insert(lengths.end(), {outputs * inputs * 9, outputs, outputs, outputs * outputs * 9, outputs, outputs});
      if (inputs != outputs) lengths.insert(lengths.end(), {outputs * inputs, outputs, outputs});
      inputs = outputs;
    }
  }
  lengths.insert(lengths.end(), {512 * 10, 10});
  return lengths;
}

void norms_and_decisions(benchmark::State& state) {
  const std::vector<std::size_t> lengths = resnet18_lengths();
  const FloatBlock block = gradient_like(3, 11'173'962);
  std::vector<double> norms(lengths.size(), 1.0);
  std::vector<std::uint8_t> fired(lengths.size());
  Config config = Config::from_text("{name: adaptive, horizon: 1.0}");
  TriggerEngine engine(TriggerPlan(config), lengths, norms);
  Iteration k = 0;
  for (auto _ : state) {
    std::size_t offset = 0;
    for (std::size_t s = 0; s < lengths.size(); offset += lengths[s++])
      norms[s] = norm(block.span().subspan(offset, lengths[s]));
    engine.decide(k++, norms, {}, fired);
    benchmark::DoNotOptimize(fired.data());
  }
}

void mix(benchmark::State& state, std::size_t n, std::size_t degree, int threads) {
  FloatBlock own = gradient_like(4, n);
  std::vector<FloatBlock> copies;
  for (std::size_t j = 0; j < degree; ++j) copies.push_back(gradient_like(5 + j, n));
  const float weight = 1.0F / static_cast<float>(degree + 1);
  std::vector<MixEdge> edges;
  for (const auto& copy : copies) edges.push_back({.weight = weight, .theirs = copy.span(), .ours = {}});
  for (auto _ : state) {
    mix_row(weight, edges, own.span(), threads);
    benchmark::DoNotOptimize(own.span().data());
  }
}

/// What of mixing with four neighbours is reading: the same five blocks, nothing written.
void read_five(benchmark::State& state, std::size_t n) {
  std::vector<FloatBlock> memory;
  std::array<const float*, 5> blocks{};
  for (std::size_t j = 0; j < blocks.size(); ++j)
    blocks[j] = memory.emplace_back(gradient_like(4 + j, n)).span().data();
  for (auto _ : state) benchmark::DoNotOptimize(largest_magnitude(blocks, n));
}

/// deg + 1 blocks make deg + 2 passes. The floor is a copy that touches as much memory, as caches make small ones
/// cheaper by the byte; it is made by one thread.
void add_mixing(std::vector<Kernel>& kernels, std::size_t n, std::size_t degree) {
  const auto values = static_cast<double>(n), blocks = static_cast<double>(degree + 1);
  const std::string size = short_number(values) + "/" + std::to_string(degree);
  for (const int threads : {1, 2}) {
    if (threads > 1 && n < 2 * worth_a_thread) continue;
    kernels.push_back({.name = (threads == 1 ? "mix/" : "mix_by_two/") + size,
                       .work = [=](benchmark::State& state) { mix(state, n, degree, threads); },
                       .floor = "copy/" + short_number(blocks * values / 2.0),
                       .floors = (blocks + 1.0) / blocks,
                       .target = {Target::Kind::ratio_at_most, 1.15},
                       .bytes = sizeof(float) * values});
  }
  if (degree != 4) return;
  kernels.push_back({.name = "mix_reads/" + short_number(values) + "/4",
                     .work = [=](benchmark::State& state) { read_five(state, n); },
                     .floor = kernels.back().floor,
                     .floors = kernels.back().floors,
                     .bytes = sizeof(float) * values});
}

}  // namespace

void add_neighbour(std::vector<Kernel>& kernels, std::size_t most_values) {
  kernels.push_back({.name = "norms/resnet18",
                     .work = norms_and_decisions,
                     .floor = "read/" + short_number(11'173'962),
                     .target = {Target::Kind::ratio_at_most, 1.1},
                     .bytes = sizeof(float) * 11'173'962.0});
  for (const std::size_t n : block_lengths(std::min<std::size_t>(most_values, 25'000'000))) {
    for (const std::size_t degree : {std::size_t{2}, std::size_t{4}}) add_mixing(kernels, n, degree);
  }
}

}  // namespace hearsay
