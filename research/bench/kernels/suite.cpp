#include "research/bench/kernels/suite.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <stdexcept>
#include <utility>

#include "apps/shared/text.hpp"
#include "base/timing.hpp"
#include "hearsay_version.hpp"

namespace hearsay {
namespace {

using Times = std::map<std::string, std::vector<double>>;

/// Keeps the time of one call for every repetition, and prints nothing.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.iterations == 0) throw std::logic_error(run.run_name.function_name + " did not run");
      if (run.run_type == Run::RT_Iteration)
        times[run.run_name.function_name].push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }
  Times times;
};

const Kernel* named(const std::vector<Kernel>& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  if (found == kernels.end()) throw std::logic_error("no kernel " + name);
  return &*found;
}

/// Those whose name contains `filter`, and what they are divided by.
std::vector<const Kernel*> wanted(const std::vector<Kernel>& kernels, const std::string& filter) {
  std::set<const Kernel*> chosen;
  for (const Kernel& kernel : kernels) {
    if (kernel.name.find(filter) == std::string::npos) continue;
    chosen.insert(&kernel);
    for (const Kernel* floor = &kernel; !floor->floor.empty();) chosen.insert(floor = named(kernels, floor->floor));
  }
  return {chosen.begin(), chosen.end()};  // in the table's order: all lie in one vector
}

bool is_met(const Target& target, double ratio, double seconds, double bytes_per_s) {
  switch (target.kind) {
    case Target::Kind::ratio_at_most:
      return ratio <= target.value;
    case Target::Kind::ratio_at_least:
      return ratio >= target.value;
    case Target::Kind::seconds_at_most:
      return seconds <= target.value;
    case Target::Kind::bytes_per_s_at_least:
      return bytes_per_s >= target.value;
    case Target::Kind::none:
      break;
  }
  return true;
}

Measured measured(const Kernel& kernel, const Times& times) {
  const auto middle = [&](const std::string& name) { return median(times.at(name)); };
  const double seconds = middle(kernel.name);
  const double ratio = kernel.floor.empty() ? 0.0 : seconds / (kernel.floors * middle(kernel.floor));
  const double rate = kernel.bytes / seconds;
  return {&kernel, times.at(kernel.name).size(), seconds, ratio, rate, is_met(kernel.target, ratio, seconds, rate)};
}

void enlist(const Kernel& kernel, int repetitions, double seconds) {
  auto work = [&kernel, seen = std::make_shared<bool>(false)](benchmark::State& state) {
    if (!std::exchange(*seen, true)) std::fprintf(stderr, "%s\n", kernel.name.c_str());
    kernel.work(state);
  };
  benchmark::RegisterBenchmark(kernel.name.c_str(), std::move(work))
      ->UseRealTime()
      ->MinTime(seconds)
      ->Repetitions(repetitions);
}

std::string wish(const Target& target) {
  switch (target.kind) {
    case Target::Kind::ratio_at_most:
      return "≤ " + significant(target.value, 3);
    case Target::Kind::ratio_at_least:
      return "≥ " + significant(target.value, 3);
    case Target::Kind::seconds_at_most:
      return "≤ " + duration(target.value);
    case Target::Kind::bytes_per_s_at_least:
      return "≥ " + byte_count(target.value) + "/s";
    case Target::Kind::none:
      break;
  }
  return "";
}

std::string floor_text(const Kernel& kernel) {
  if (kernel.floor.empty() || kernel.floors == 1.0) return kernel.floor;
  return significant(kernel.floors, 3) + " × " + kernel.floor;
}

}  // namespace

std::vector<Measured> measure(const std::vector<Kernel>& kernels, const std::string& filter, int repetitions,
                              double seconds) {
  const std::vector<const Kernel*> chosen = wanted(kernels, filter);
  for (const Kernel* kernel : chosen) enlist(*kernel, repetitions, seconds);
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  std::vector<Measured> results;
  for (const Kernel* kernel : chosen) results.push_back(measured(*kernel, collector.times));
  return results;
}

void print_table(const std::vector<Measured>& results, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"kernel", "median", "values", "floor", "ratio", "target", ""}};
  for (const Measured& m : results)
    rows.push_back({m.kernel->name, duration(m.median_s), m.bytes_per_s > 0.0 ? byte_count(m.bytes_per_s) + "/s" : "",
                    floor_text(*m.kernel), m.kernel->floor.empty() ? "" : fixed(m.ratio, 2), wish(m.kernel->target),
                    m.kernel->target.kind == Target::Kind::none ? ""
                    : m.met                                     ? "met"
                                                                : "missed"});
  out << aligned_table(rows);
}

void print_json_lines(const std::vector<Measured>& results, std::ostream& out) {
  for (const Measured& m : results) {
    nlohmann::ordered_json line{{"kernel", m.kernel->name}, {"repetitions", m.repetitions}, {"median_s", m.median_s}};
    if (!m.kernel->floor.empty()) line.update({{"floor", floor_text(*m.kernel)}, {"ratio", m.ratio}});
    if (m.bytes_per_s > 0.0) line["values_bytes_per_s"] = m.bytes_per_s;
    if (m.kernel->target.kind != Target::Kind::none) line.update({{"target", wish(m.kernel->target)}, {"met", m.met}});
    line.update({{"machine", processor_name()}, {"hearsay", std::string(full_version)}});
    out << line.dump() << "\n";
  }
}

}  // namespace hearsay
