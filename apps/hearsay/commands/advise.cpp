// hearsay advise CONFIG [--bytes-fraction F] [-n P]: the configuration with which a job of these shares on this graph
// reaches most.
#include <cstdio>
#include <string>

#include "apps/hearsay/advice/advice.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/chosen_run.hpp"
#include "apps/shared/configuration.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"
#include "topology/topology.hpp"

namespace hearsay {
namespace {

/// What advice goes by.
struct Situation {
  std::string partition;  ///< as the configuration has it: "dirichlet, alpha 0.1"
  Shares shares;
  std::string graph;
  double gap;
};

/// Of a complete configuration.
Situation situation(const std::string& config_yaml, int ranks) {
  constexpr double nearly_alike = 1.0;  // Dirichlet's alpha, from which on every rank sees all of ten classes
  Config root = Config::from_text(config_yaml);
  Config partition = root.section("data").section("partition"), topology = root.section("topology");
  const TopologyPlan plan(topology);  // an exchange between all has no graph: a ring, as where none is given
  Situation now{.partition = partition.text("name", "iid", ""),
                .shares = Shares::alike,
                .graph = plan.graph_name(),
                .gap = plan.build(ranks).spectrum().gap};
  if (now.partition == "shards") now.shares = Shares::sorted;
  if (now.partition == "dirichlet") {
    const double alpha = partition.real("alpha", nearly_alike, {}, "");
    now.partition += ", alpha " + significant(alpha, 3);
    if (alpha < nearly_alike) now.shares = Shares::dirichlet;
  }
  return now;
}

const char* words(Shares shares) {
  switch (shares) {
    case Shares::alike:
      return "iid shares";
    case Shares::dirichlet:
      return "Dirichlet shares, alpha 0.1";
    case Shares::sorted:
      return "label-sorted shares";
  }
  return "";
}

std::vector<std::string> row(const std::string& name, const Reached& reached) {
  return {"#   " + name, fixed(reached.accuracy, 2), fixed(reached.worst, 2), fixed(reached.bytes, 1)};
}

/// What writes the same again.
std::string command_line(const AdviseArguments& arguments) {
  std::string text = "hearsay advise " + arguments.config.file.string() + " --bytes-fraction " +
                     significant(arguments.bytes_fraction, 6) + " -n " + std::to_string(arguments.ranks);
  for (const std::string& setting : arguments.config.set) text += " \\\n#   --set '" + setting + "'";
  return text;
}

std::string reasons(const AdviseArguments& arguments, const Situation& now, const MeasuredCell& cell,
                    const MeasuredCell::Method& method) {
  std::string text = "# " + command_line(arguments) + "\n# Shares: " + now.partition +
                     (now.shares == Shares::alike ? ", taken for alike" : ", unlike") + ". Graph: " + now.graph +
                     " of " + std::to_string(arguments.ranks) + ", spectral gap " + significant(now.gap, 2) + ".\n";
  const std::string budget = significant(100.0 * arguments.bytes_fraction, 3) + " % of D-PSGD's bytes";
  text += "# " + method.name + ", corrected: ";
  if (method.reached.bytes > within_budget * 100.0 * arguments.bytes_fraction)
    text += "nothing that was measured needs at most " + budget + "; this is the cheapest.\n";
  else
    text += "of what was measured with at most " + budget + "\n# it is the cheapest within " +
            significant(as_accurate, 1) + " points of the most accurate.\n";
  text += aligned_table({{"#   ", "averaged model, %", "worst rank, %", "bytes, %"},
                         row("this", method.reached),
                         row("D-PSGD without correction", cell.plain_dpsgd)});
  text += "#   (an all-reduce: " + fixed(cell.all_reduce.accuracy, 2) + " %)\n";
  text += "# Measured on MNIST with mnist_cnn, graph: " + cell.graph + " of " + std::to_string(cell.ranks) +
          " (spectral gap " + significant(cell.gap, 2) + "), batch 64 a rank, learning rate\n# 0.05, 10 epochs, " +
          words(cell.shares) + ", three seeds: research/results/skew.md. Another model or batch moves the numbers.\n";
  if (now.shares != Shares::alike && method.name.find("strength") == std::string::npos)
    text += "# Small batches are noisy: then try exchange.correction.strength: 0.2.\n";
  return text;
}

}  // namespace

int advise_command(const AdviseArguments& arguments) {
  if (!(arguments.bytes_fraction > 0.0 && arguments.bytes_fraction <= 1.0))
    throw ConfigError("--bytes-fraction " + significant(arguments.bytes_fraction, 6) +
                      ": a fraction of D-PSGD's bytes is in (0, 1]; 0.05 is a twentieth");
  require_ranks(arguments.ranks);
  const auto& [file, set] = arguments.config;
  const ChosenRun given = read_configuration(file, set, [](Config root) { return ChosenRun(std::move(root)); });
  const Situation now = situation(given.plan().config_yaml(), arguments.ranks);
  const bool asynchronous = given.plan().parts().exchange->schedule() == Schedule::asynchronous;
  const std::vector<MeasuredCell> cells = measured_cells();
  const MeasuredCell& cell = nearest_cell(cells, now.shares, now.gap);
  const MeasuredCell::Method& method = best_method(cell, arguments.bytes_fraction);
  std::vector<std::string> settings = set;
  for (std::string& setting : settings_of(method.name)) settings.push_back(std::move(setting));
  if (asynchronous) settings.emplace_back("exchange.schedule=asynchronous");
  const std::string advised = read_configuration(file, settings, [](Config root) {
    static_cast<void>(ChosenRun(root));
    return root.given();
  });
  std::printf("%s%s%s", reasons(arguments, now, cell, method).c_str(),
              asynchronous ? "# Measured in lockstep; the schedule, asynchronous, is this configuration's own.\n" : "",
              advised.c_str());
  return 0;
}

}  // namespace hearsay
