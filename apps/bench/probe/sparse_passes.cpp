#include "apps/bench/probe/sparse_passes.hpp"

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/between_ranks/oracle.hpp"
#include "base/random.hpp"
#include "base/timing.hpp"
#include "runtime/exchange/global/parts/error_feedback.hpp"

namespace hearsay {
namespace {

std::vector<float> normal_values(std::uint64_t seed, std::size_t n) {
  Random random(stream_seed(seed, "bench gradient"));
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::unique_ptr<Selector> make_selector(std::string_view name, double density) {
  Config config = Config::from_text("{name: " + std::string(name) + ", density: " + std::to_string(density) + "}");
  return chosen_entry(selectors(), config, "topk", "what is selected").make(config);
}

double mean(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

}  // namespace

MergeTiming measure_merge(std::uint64_t seed, int repeats) {
  constexpr std::size_t values = 25'000'000, entries = 25'000;
  const SparseVector a = normal_entries(seed, 0, values, entries), b = normal_entries(seed, 1, values, entries);
  Truncation truncation;  // keeps its memory, as in training
  std::vector<double> seconds;
  for (int i = -1; i < repeats; ++i) {
    const double taken = seconds_taken([&] {
      SparseVector merged = sum(a, b);
      truncation.keep_largest(merged, entries);
    });
    if (i >= 0) seconds.push_back(taken);
  }
  const double mean_s = mean(seconds);
  return {.entries = entries, .repeats = repeats, .median_s = median(std::move(seconds)), .mean_s = mean_s};
}

SelectionTiming measure_selection(std::uint64_t seed, int repeats, double density, std::string_view name,
                                  std::size_t values) {
  constexpr std::size_t windows = 1'000'000;
  // Every iteration's gradient is another window of one block: new at every position, cheap to make.
  const std::vector<float> noise = normal_values(seed, values + windows);
  Random offsets(stream_seed(seed, "bench windows"));
  const auto selector = make_selector(name, density);
  ErrorFeedback alone({}, values, 1), feedback({}, values, 1);
  std::vector<std::uint32_t> positions;
  std::vector<double> addition_s, selection_s, ratios;
  constexpr int warmup = 20;  // iterations until the residual has found its size, and the selector its level
  for (int i = -warmup; i < repeats; ++i) {
    const std::span<const float> g(noise.data() + offsets.below(windows), values);
    const double addition = seconds_taken([&] { alone.accumulate(g); });
    const double selection = seconds_taken([&] {
      selector->add_and_select(feedback.residual(), g, 1.0F, kept_count(density, values), positions);
      feedback.take(positions);
    });
    if (i < 0) continue;
    addition_s.push_back(addition), selection_s.push_back(selection), ratios.push_back(selection / addition);
  }
  SelectionTiming timing{.values = values, .density = density, .repeats = repeats};
  timing.reads = selector->reads(kept_count(density, values));
  timing.mean_addition_s = mean(addition_s), timing.mean_selection_s = mean(selection_s);
  timing.addition_s = median(std::move(addition_s)), timing.selection_s = median(std::move(selection_s));
  timing.ratio = median(std::move(ratios));
  return timing;
}

}  // namespace hearsay
