// The selectors that choose a given fraction, beside LibTorch's topk: time, and how much of the exact choice's
// magnitude the chosen values have. What shi2021towards compares MSTopK with, on a processor instead of a GPU.
//
//   selector_times --values 1e5,1e6,1e7 --density 0.001 > selectors.jsonl
//
// A JSON object a line: selector, values, density, repeats, median_s (of one call, one thread), mass_of_exact (Σ of the
// magnitudes chosen / Σ of the k largest), processor, hearsay. Values are independent and normal.
#include <torch/torch.h>
#include <hearsay_version.hpp>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/timing.hpp"
#include "sparsify/sparsify.hpp"

namespace {

using namespace hearsay;
using Positions = std::vector<std::uint32_t>;

struct Options {
  std::vector<double> values{1e5, 1e6, 1e7}, densities{0.001, 0.01};
  int repeats = 5;
};

/// "Intel(R) Xeon(R) Processor", as /proc/cpuinfo has it.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

double mass(const std::vector<float>& values, const Positions& positions) {
  double sum = 0.0;
  for (const std::uint32_t i : positions) sum += std::abs(static_cast<double>(values[i]));
  return sum;
}

class Bench {
 public:
  Bench(std::size_t n, double density, int repeats) : density_(density), repeats_(repeats), values_(n) {
    Random random(stream_seed(n, "bench selectors"));
    for (float& value : values_) value = static_cast<float>(random.normal());
  }
  void run() {
    const auto k = kept_count(density_, values_.size());
    for (const char* name : {"topk", "mstopk", "sampled"}) {
      Config config = Config::from_text("{name: " + std::string(name) + "}");
      const auto selector = chosen_entry(selectors(), config, "topk", "what is selected").make(config);
      measure(name, [&](Positions& positions) { selector->select(values_, k, positions); });
    }
    const auto block = torch::from_blob(values_.data(), {static_cast<std::int64_t>(values_.size())});
    measure("LibTorch's topk", [&](Positions& positions) {
      const auto found = std::get<1>(torch::topk(block.abs(), static_cast<std::int64_t>(k)));
      const auto* first = found.data_ptr<std::int64_t>();
      positions.assign(first, first + found.numel());
    });
  }

 private:
  template <class Select>
  void measure(const std::string& name, Select&& select) {
    std::vector<double> seconds;
    Positions positions;
    for (int i = -1; i < repeats_; ++i) {  // the first call gets the memory
      const double taken = seconds_taken([&] { select(positions); });
      if (i >= 0) seconds.push_back(taken);
    }
    if (exact_mass_ == 0.0) exact_mass_ = mass(values_, positions);  // topk comes first
    const nlohmann::ordered_json line{{"selector", name},
                                      {"values", values_.size()},
                                      {"density", density_},
                                      {"repeats", repeats_},
                                      {"median_s", median(std::move(seconds))},
                                      {"mass_of_exact", mass(values_, positions) / exact_mass_},
                                      {"processor", processor()},
                                      {"hearsay", std::string(full_version)}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  double density_;
  int repeats_;
  std::vector<float> values_;
  double exact_mass_ = 0.0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Time of one selection on one thread, a JSON object a line");
  app.add_option("--values", options.values, "Lengths of the vector; 1e6 is a million")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 4e9))
      ->capture_default_str();
  app.add_option("--density", options.densities, "Fractions chosen")
      ->delimiter(',')
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "Calls timed, of which the median is taken")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  torch::set_num_threads(1);
  for (const double n : options.values)
    for (const double density : options.densities) Bench(static_cast<std::size_t>(n), density, options.repeats).run();
  return 0;
}
