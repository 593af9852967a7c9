// hearsay bench exchanges
#include <cmath>
#include <cstdio>

#include "apps/bench/between_ranks/exchanges.hpp"
#include "apps/bench/probe/probe.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/long_work.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

ExchangesOptions checked_exchanges(const BenchExchangesArguments& arguments) {
  if (!(arguments.values >= 1.0 && arguments.values < 4294967296.0) || arguments.values != std::floor(arguments.values))
    throw ConfigError("--values " + significant(arguments.values, 10) + ": a whole number, 1 to 2^32 - 1");
  if (arguments.segments < 1 || arguments.segments > arguments.values)
    throw ConfigError("--segments " + std::to_string(arguments.segments) + ": from 1 to the number of values");
  if (!(arguments.density > 0.0 && arguments.density <= 1.0))
    throw ConfigError("--density " + significant(arguments.density, 6) + ": a density is a fraction in (0, 1]");
  if (arguments.iterations < 1)
    throw ConfigError("--iterations " + std::to_string(arguments.iterations) + ": at least 1 iteration is timed");
  return {.values = static_cast<std::size_t>(arguments.values),
          .segments = arguments.segments,
          .density = arguments.density,
          .iterations = arguments.iterations,
          .seconds = arguments.seconds,
          .only = arguments.only};
}

std::string table(const std::vector<ExchangeTiming>& timings) {
  std::vector<std::vector<std::string>> rows{
      {"algorithm", "sent", "by formula", "messages", "own work", "predicted", "measured", "runs", "off by"}};
  for (const ExchangeTiming& t : timings) {
    rows.push_back({t.algorithm, byte_count(t.sent_bytes), byte_count(t.predicted_bytes), duration(t.communication_s),
                    duration(t.own_work_s), duration(t.predicted_s()), duration(t.median_s),
                    std::to_string(t.iterations), percent(t.predicted_s() / t.median_s - 1.0, 0)});
  }
  return aligned_table(rows);
}

}  // namespace

int bench_exchanges_command(const BenchExchangesArguments& arguments, const Words& words, JobSlot& job) {
  const ExchangesOptions options = checked_exchanges(arguments);
  default_to_one_thread();
  start_measuring(words, job);
  if (job->ranks() < 2) throw ConfigError("an exchange needs two ranks: mpirun -n P hearsay bench exchanges");
  const bool speaks = job->rank() == 0;
  const auto say = [speaks](const std::string& what) {
    if (speaks) std::fprintf(stderr, "bench: %s\n", what.c_str());
  };
  const Network network = arguments.network ? read_network(*arguments.network) : measure_network(say);
  LongWork work("bench exchanges", "algorithm", speaks);
  const auto timings = measure_exchanges(
      options, network, [&](const BenchStep& step) { work.reached(step.index - 1, step.count, step.what); });
  if (!speaks) return 0;
  std::printf("%s of %s values in %s, density %s\n%s\n%s", counted(job->ranks(), "rank").c_str(),
              with_separators(options.values).c_str(), counted(options.segments, "segment").c_str(),
              significant(options.density, 4).c_str(), table(timings).c_str(),
              "sent: by a rank in an iteration. messages, own work: predicted, one after the other "
              "(docs/guide/predict.md).\n"
              "measured: median on the slowest rank; off by: predicted against measured.\n");
  return 0;
}

}  // namespace hearsay
