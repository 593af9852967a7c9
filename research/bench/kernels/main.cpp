// The kernels of the training loop beside the memory passes that bound them.
//
//   kernels                                            all, a few minutes, 4 GB of memory
//   kernels --filter select/1e7 --repetitions 21
//   kernels --json kernels.jsonl                       as JSON, one object a line
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <iostream>

#include "base/timing.hpp"
#include "research/bench/kernels/suite.hpp"

namespace {

using namespace hearsay;

struct Options {
  std::string filter, json;
  int repetitions = 9;
  double seconds = 0.1, most_values = 1.38e8;
};

std::vector<Kernel> all_kernels(std::size_t most_values) {
  std::vector<Kernel> kernels;
  add_passes(kernels, most_values);
  add_selection(kernels, most_values);
  add_neighbour(kernels, most_values);
  add_merging(kernels);
  add_codecs(kernels);
  add_value_events(kernels);
  if (most_values >= 10'000'000) add_torch_topk(kernels);
  return kernels;
}

int run(const Options& options) {
  std::string interleaved = "--benchmark_enable_random_interleaving=true", program = "kernels";
  std::array arguments{program.data(), interleaved.data()};
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  const std::vector<Kernel> kernels = all_kernels(static_cast<std::size_t>(options.most_values));
  const std::vector<Measured> results = measure(kernels, options.filter, options.repetitions, options.seconds);
  if (results.empty()) {
    std::cerr << "kernels: no kernel's name contains '" << options.filter << "'\n";
    return 2;
  }
  std::cout << processor_name() << "; one thread where no other number is named; medians of " << options.repetitions
            << "; floors: copy (n reads, n writes), read (n), add (2 n reads, n writes)\n\n";
  print_table(results, std::cout);
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  print_json_lines(results, file);
  if (file.flush()) return 0;
  std::cerr << "kernels: cannot write " << options.json << "\n";
  return 3;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Times Hearsay's kernels as ratios to memory passes measured in the same run.", "kernels");
  Options options;
  app.add_option("--filter", options.filter, "only kernels whose name contains this")->type_name("TEXT");
  app.add_option("--repetitions", options.repetitions, "of which the median is taken [9]")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "about so long for one repetition [0.1]")
      ->check(CLI::Range(0.001, 60.0));
  app.add_option("--most-values", options.most_values, "longest block to select from [1.38e8]")
      ->check(CLI::Range(1e6, 4e9));
  app.add_option("--json", options.json, "write one JSON object a line as well")->type_name("FILE");
  CLI11_PARSE(app, count, arguments);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << "kernels: " << error.what() << "\n";
    return 1;
  }
}
