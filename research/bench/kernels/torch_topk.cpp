// The competitor: what a user of LibTorch writes for r ← r + g and the k largest magnitudes.
#include <torch/torch.h>

#include "research/bench/kernels/data.hpp"
#include "research/bench/kernels/suite.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {
namespace {

void topk_and_gather(benchmark::State& state, std::size_t n, double density) {
  const torch::NoGradGuard no_graph;
  torch::set_num_threads(1);
  FloatBlock values = gradient_like(2, n);
  const auto block = torch::from_blob(values.span().data(), {static_cast<std::int64_t>(n)});
  const auto k = static_cast<std::int64_t>(kept_count(density, n));
  for (auto _ : state) {
    const auto positions = std::get<1>(torch::topk(block.abs(), k, -1, true, false));
    auto kept = block.index_select(0, positions);
    benchmark::DoNotOptimize(kept.data_ptr());
  }
}

}  // namespace

void add_torch_topk(std::vector<Kernel>& kernels) {
  constexpr std::size_t n = 10'000'000;
  for (const double density : {0.001, 0.01}) {
    const std::string size = short_number(static_cast<double>(n)) + "/" + short_number(density);
    kernels.push_back({.name = "torch_topk/" + size,
                       .work = [=](benchmark::State& state) { topk_and_gather(state, n, density); },
                       .floor = "select/" + size,
                       .target = {Target::Kind::ratio_at_least, 30.0},
                       .bytes = sizeof(float) * static_cast<double>(n)});
  }
}

}  // namespace hearsay
