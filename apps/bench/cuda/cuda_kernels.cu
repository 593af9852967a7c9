// The GPU's kernels beside the memory passes that bound them, and beside CUB. One JSON object a line:
// name, n, density, seconds (median), ratio to the floor, floor (bytes that must be moved, at the bandwidth that a copy
// of the same length has in the same run), machine. Before anything is timed, the exact
// selection is compared with a sort, and the others with the processor's.
//
//   cuda_kernels [MOST_VALUES [REPEATS]]        defaults: 138000000 50
//
// Lengths that fit into the GPU's cache are copied and processed there: their ratios compare like with like.
// Exit codes: 0 done, 1 a result was wrong, 2 wrong usage, 4 no GPU or CUDA failed.
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_select.cuh>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numbers>

#include "apps/bench/cuda/entries.hpp"
#include "apps/bench/cuda/mixing.hpp"
#include "apps/bench/cuda/norms.hpp"
#include "apps/bench/cuda/oracle.cuh"
#include "apps/bench/cuda/select.hpp"
#include "apps/bench/cuda/timing.cuh"
#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/gpu/device_search.hpp"
#include "runtime/gpu/machine/gpu.cuh"
#include "sparsify/sparsify.hpp"

namespace hearsay::device {
namespace {

constexpr int selection_warmup = 20;  // calls until the residual has found its size, and the selection its level

/// Normal values whose scale is log-normal over stretches of 4096, as gradients of different tensors are.
struct GradientLike {
  float* values;
  std::uint64_t seed;

  static __device__ float normal(std::uint64_t stream) {
    const std::uint64_t bits = scramble(stream);
    const float radius = sqrtf(-2.0F * logf((static_cast<float>(bits >> 40) + 1.0F) * 0x1p-24F));
    return radius * cosf(2.0F * std::numbers::pi_v<float> * static_cast<float>(bits & 0xffffffU) * 0x1p-24F);
  }
  __device__ void operator()(std::uint64_t i) const {
    values[i] = normal(seed + 2 * i) * expf(normal(seed + 2 * (i / 4096) + 1));
  }
};

struct Reaches {
  const float* values;
  std::int32_t least;
  __device__ bool operator()(std::uint32_t i) const { return magnitude_bits(values[i]) >= least; }
};

struct Run {
  cudaStream_t stream;
  std::size_t n;
  int repeats;
  DeviceBuffer<float> noise, values, other;  // noise: n + windows values, new gradients at every offset
  std::size_t calls = 0;
  Table table;

  static constexpr std::size_t windows = 1 << 20;

  const float* next_gradient() { return noise.data() + 4 * (scramble(calls++) % (windows / 4)); }
  double seconds(const std::function<void()>& work, int warmup = 3) const {
    return median_seconds(stream, warmup, repeats, work);
  }
};

double copy_bandwidth(cudaStream_t stream, DeviceBuffer<float>& to, const DeviceBuffer<float>& from, std::size_t n,
                      int repeats) {
  const double seconds = median_seconds(stream, 3, repeats, [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), 4 * n, cudaMemcpyDeviceToDevice, stream));
  });
  return 8.0 * static_cast<double>(n) / seconds;
}

void require(bool right, const std::string& what) {
  if (!right) throw std::logic_error("cuda_kernels: " + what);
}

/// Some calls of the fused selection against adding, sorting and taking the first k.
void verify_selection(Run& run, std::uint32_t k) {
  DeviceTopK topk(run.n, k);
  SortedByMagnitude oracle(run.n);
  DeviceBuffer<std::uint32_t> positions(k);
  DeviceBuffer<float> entries(k);
  check(cudaMemsetAsync(run.values.data(), 0, 4 * run.n, run.stream));
  for (int call = 0; call < 3; ++call) {
    const float* const gradient = run.next_gradient();
    check(cudaMemcpyAsync(run.other.data(), run.values.data(), 4 * run.n, cudaMemcpyDeviceToDevice, run.stream));
    on_every_index(run.stream, run.n, Add{run.other.data(), gradient, 0.5F});
    oracle.sort(run.stream, run.other.data());
    topk.add_and_select(run.stream, run.values.data(), gradient, 0.5F, k, {positions.data(), entries.data()});
    topk.outcome(run.stream, run.values.data());
    std::vector<std::uint32_t> found(k);
    positions.download(std::span(found));
    require(found == oracle.largest(run.stream, k), "the selection differs from CUB's sort");
  }
}

/// The searches beside the exact one: one call each against the processor's selector, then their times.
void measure_search(Run& run, const std::string& name, double density, std::uint32_t k) {
  Config section = Config::from_text("{name: " + name + ", density: " + std::to_string(density) + "}");
  const auto selector = chosen_entry(selectors(), section, "dense", "what is timed").make(section);
  const auto same = selector->fresh();
  const std::size_t most = selector->most(k, run.n);
  Gpu gpu(run.stream);
  DeviceSearch<Gpu> search(gpu, selector->search_kind(), run.n, most);
  DeviceBuffer<std::uint32_t> positions(most);
  DeviceBuffer<float> entries(most);
  const auto select = [&] {
    search.add_and_select(gpu, run.values.data(), run.next_gradient(), 0.5F, k, selector->next_search(k, run.n),
                          {positions.data(), entries.data()});
  };
  check(cudaMemsetAsync(run.values.data(), 0, 4 * run.n, run.stream));
  const float* const gradient = run.noise.data() + 4 * (scramble(run.calls) % (Run::windows / 4));
  select();
  synchronize(run.stream);
  std::vector<float> values(run.n);
  check(cudaMemcpy(values.data(), gradient, 4 * run.n, cudaMemcpyDeviceToHost));
  for (float& value : values) value *= 0.5F;
  std::vector<std::uint32_t> expected, found(most);
  same->select(values, k, expected);
  positions.download(std::span(found));
  found.resize(expected.size());
  require(found == expected, name + " differs from the processor's");
  run.table.line(("add_and_" + name).c_str(), density, run.seconds(select, selection_warmup), "12n",
                 12.0 * static_cast<double>(run.n));
}

void measure_selection(Run& run, double density) {
  const auto n = static_cast<double>(run.n);
  const auto k = static_cast<std::uint32_t>(kept_count(density, run.n));
  verify_selection(run, k);
  DeviceBuffer<std::uint32_t> positions(k);
  DeviceBuffer<float> entries(k);
  const Entries found{positions.data(), entries.data()};
  const auto add = [&] { on_every_index(run.stream, run.n, Add{run.values.data(), run.next_gradient(), 0.5F}); };
  run.table.line("add", density, run.seconds(add), "12n", 12 * n);
  {
    DeviceTopK topk(run.n, k);
    const auto select = [&] {
      topk.add_and_select(run.stream, run.values.data(), run.next_gradient(), 0.5F, k, found);
    };
    run.table.line("add_and_topk", density, run.seconds(select, selection_warmup), "12n", 12 * n);
  }
  for (const char* const name : {"mstopk", "sampled", "chunked"}) measure_search(run, name, density, k);
  SortedByMagnitude sorted(run.n);
  run.table.line("cub_radix_sort_pairs", density, run.seconds([&] { sorted.sort(run.stream, run.values.data()); }),
                 "4n", 4 * n);
}

/// Compaction by a threshold that is known before: what an ordered selection costs CUB, without finding the threshold.
void measure_cub_select(Run& run, double density) {
  const auto k = kept_count(density, run.n);
  SortedByMagnitude sorted(run.n);
  sorted.sort(run.stream, run.noise.data());
  const std::int32_t least = [&] {
    const auto positions = sorted.largest(run.stream, k);
    std::vector<float> values(run.n);
    run.noise.download(std::span(values));
    std::int32_t smallest = infinity_bits;
    for (const std::uint32_t i : positions) smallest = std::min(smallest, magnitude_bits(values[i]));
    return smallest;
  }();
  const Reaches reaches{run.noise.data(), least};
  DeviceBuffer<std::uint32_t> positions(run.n), count(1);
  const thrust::counting_iterator<std::uint32_t> all(0);
  std::size_t bytes = 0;
  check(cub::DeviceSelect::If(nullptr, bytes, all, positions.data(), count.data(), run.n, reaches, run.stream));
  DeviceBuffer<std::byte> scratch(bytes);
  const auto select = [&] {
    check(
        cub::DeviceSelect::If(scratch.data(), bytes, all, positions.data(), count.data(), run.n, reaches, run.stream));
  };
  run.table.line("cub_select_if", density, run.seconds(select), "4n", 4.0 * static_cast<double>(run.n));
}

/// Every scattered access moves a sector of 32 bytes.
void measure_entries(Run& run, double density) {
  const auto k = static_cast<std::uint32_t>(kept_count(density, run.n));
  std::vector<std::uint32_t> every(k);
  for (std::uint32_t e = 0; e < k; ++e) every[e] = static_cast<std::uint32_t>(e * (run.n / k));
  DeviceBuffer<std::uint32_t> positions(k);
  positions.upload(std::span<const std::uint32_t>(every));
  DeviceBuffer<float> entries(k);
  float* const block = run.values.data();
  const auto time = [&](const char* name, const char* floor, double bytes, const std::function<void()>& work) {
    run.table.line(name, density, run.seconds(work), floor, bytes);
  };
  time("gather", "40k", 40.0 * k, [&] { gather(run.stream, block, positions.data(), k, entries.data()); });
  time("scatter_add", "72k", 72.0 * k,
       [&] { scatter_add(run.stream, 0.5F, entries.data(), positions.data(), k, block); });
}

void measure_norms(Run& run) {
  constexpr std::size_t count = 62;  // as ResNet-18 has; lengths grow
  std::vector<SegmentRange> segments;
  for (std::uint64_t s = 0; s < count; ++s) {
    const std::uint64_t first = run.n * s * s / (count * count), end = run.n * (s + 1) * (s + 1) / (count * count);
    segments.push_back({first, end - first});
  }
  DeviceNorms norms(segments);
  DeviceBuffer<double> out(count);
  const auto work = [&] { norms.compute(run.stream, run.noise.data(), out.data()); };
  run.table.line("norms_62_segments", 0, run.seconds(work), "4n", 4.0 * static_cast<double>(run.n));
}

void measure_mixing(Run& run) {
  for (const unsigned degree : {2U, 4U}) {
    std::vector<DeviceBuffer<float>> copies;
    std::vector<WeightedCopy> edges;
    for (unsigned e = 0; e < degree; ++e) {
      copies.emplace_back(run.n);
      on_every_index(run.stream, run.n, GradientLike{copies.back().data(), e});
      edges.push_back({copies.back().data(), 1.0F / static_cast<float>(degree + 1)});
    }
    const auto work = [&] { mix_row(run.stream, edges[0].weight, edges, run.values.data(), run.n); };
    run.table.line(degree == 2 ? "mix_degree_2" : "mix_degree_4", 0, run.seconds(work), "4n (degree + 2)",
                   4.0 * static_cast<double>(run.n) * (degree + 2));
  }
}

void measure(std::size_t n, int repeats) {
  Stream stream;
  DeviceBuffer<float> noise(n + Run::windows), values(n), other(n);
  on_every_index(stream.handle(), noise.size(), GradientLike{noise.data(), scramble(n)});
  const double bandwidth = copy_bandwidth(stream.handle(), values, noise, n, repeats);
  Run run{stream.handle(),
          n,
          repeats,
          std::move(noise),
          std::move(values),
          std::move(other),
          0,
          Table(device_name(), n, bandwidth)};
  run.table.line("copy", 0, 8.0 * static_cast<double>(n) / bandwidth, "8n", 8.0 * static_cast<double>(n));
  for (const double density : {0.001, 0.01, 0.1}) {
    measure_selection(run, density);
    measure_cub_select(run, density);
    measure_entries(run, density);
  }
  measure_norms(run);
  measure_mixing(run);
}

int measure_all(std::size_t most, int repeats) {
  if (device_count() == 0)
    throw CommunicationError("cuda_kernels: no GPU was found. Run it where nvidia-smi lists one.");
  for (const std::size_t n : {1'000'000UL, 10'000'000UL, 25'000'000UL, 138'000'000UL})
    if (n <= most) measure(n, repeats);
  return 0;
}

}  // namespace
}  // namespace hearsay::device

int main(int argc, char** argv) {
  const double most = argc > 1 ? std::atof(argv[1]) : 138e6;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 50;
  if (argc > 3 || most < 1e6 || repeats < 1) {
    std::cerr << "Usage: cuda_kernels [MOST_VALUES [REPEATS]]   (at least 1e6 values, 1 repeat; defaults 138e6, 50)\n";
    return 2;
  }
  try {
    return hearsay::device::measure_all(static_cast<std::size_t>(most), repeats);
  } catch (const hearsay::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
