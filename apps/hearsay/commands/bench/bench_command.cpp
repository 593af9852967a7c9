// hearsay bench [NAME …]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/bench/between_ranks/collectives.hpp"
#include "apps/bench/probe/sparse_passes.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/views/bench_report.hpp"
#include "apps/shared/long_work.hpp"
#include "apps/shared/text.hpp"
#include "base/config/nearest.hpp"
#include "base/error.hpp"
#include "hearsay_version.hpp"
#include "runtime/mpi/communicator.hpp"
#include "runtime/mpi/environment.hpp"
#include "runtime/training/process/same_run.hpp"

namespace hearsay {
namespace {

std::size_t checked_length(double values) {
  constexpr double limit = 4294967296.0;  // positions are 32-bit
  if (!(values >= 1.0 && values < limit) || values != std::floor(values))
    throw ConfigError("--values " + significant(values, 10) +
                      ": a gradient has a whole number of values, 1 to 2^32 - 1");
  return static_cast<std::size_t>(values);
}

/// Throws ConfigError.
CollectivesOptions checked(const BenchCollectivesArguments& arguments) {
  CollectivesOptions options{.calls = arguments.calls, .seconds = arguments.seconds};
  for (const double values : arguments.values) options.values.push_back(checked_length(values));
  for (const double density : arguments.densities) {
    if (!(density > 0.0 && density <= 1.0))
      throw ConfigError("--density " + significant(density, 6) + ": a density is a fraction in (0, 1]");
    options.densities.push_back(density);
  }
  if (options.calls < 1) throw ConfigError("--calls " + std::to_string(options.calls) + ": at least 1 call is timed");
  if (!(options.seconds >= 0.0))
    throw ConfigError("--seconds " + significant(options.seconds, 6) + ": must be 0 or more");
  return options;
}

}  // namespace

void start_measuring(const Words& words, JobSlot& job) {
  job = std::make_unique<mpi::Environment>();
  mpi::Communicator world;
  require_same_program(world);
  require_same_options(world, words);
}

int bench_command(const std::vector<BenchName>& benches, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  std::string known;
  std::size_t width = 0;
  for (const BenchName& bench : benches) {
    names.push_back(bench.name);
    known += (known.empty() ? "" : ", ") + bench.name;
    width = std::max(width, screen_width(bench.name));
  }
  if (!arguments.empty()) {
    const std::string near = nearest(arguments.front(), names);
    throw ConfigError("unknown bench '" + arguments.front() + "'; known: " + known +
                      (near.empty() ? "" : " — did you mean '" + near + "'?"));
  }
  for (const BenchName& bench : benches)
    std::printf("%s  %s\n", pad_right(bench.name, width).c_str(),
                wrapped(bench.summary, 98 - width, width + 2).c_str());
  std::printf("\n`hearsay bench NAME --help` shows how each is run.\n");
  return 0;
}

int bench_collectives_command(const BenchCollectivesArguments& arguments, const Words& words, JobSlot& job) {
  const CollectivesOptions options = checked(arguments);
  start_measuring(words, job);
  if (job->ranks() < 2)
    throw ConfigError(
        "bench collectives measures messages between ranks and needs at least two; start it with "
        "mpirun -n 4 hearsay bench collectives");
  mpi::Communicator world;
  const bool speaks = job->rank() == 0;
  LongWork work("bench collectives", "step", speaks, options.seconds);
  CollectivesBench bench;
  bench.collectives =
      measure_collectives(options, [&](const BenchStep& step) { work.reached(step.index - 1, step.count, step.what); });
  if (speaks) {
    constexpr int most_merges = 200, most_selections = 20;
    bench.machine = {.cores = std::thread::hardware_concurrency(),
                     .mpi = mpi::Environment::library_version(),
                     .hearsay = std::string(full_version)};
    bench.merge = measure_merge(options.seed, std::min(options.calls, most_merges));
    bench.selection = measure_selection(options.seed, std::min(options.calls, most_selections));
    std::printf("%s", (arguments.json ? bench_json(bench) : bench_text(bench)).c_str());
  }
  world.barrier();  // where the others sleep while rank 0 measures by itself
  return 0;
}

}  // namespace hearsay
