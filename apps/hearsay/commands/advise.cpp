// hearsay advise CONFIG [--bytes-fraction F]: the configuration with which a job of these shares reaches most.
#include <cstdio>
#include <string>

#include "apps/hearsay/advice/advice.hpp"
#include "apps/hearsay/commands.hpp"
#include "apps/shared/chosen_run.hpp"
#include "apps/shared/configuration.hpp"
#include "apps/shared/text.hpp"
#include "base/error.hpp"

namespace hearsay {
namespace {

/// What advice goes by.
struct Situation {
  std::string partition;  ///< as the configuration has it: "dirichlet, alpha 0.1"
  Shares shares;
};

/// Of a complete configuration.
Situation situation(const std::string& config_yaml) {
  constexpr double nearly_alike = 1.0;  // Dirichlet's alpha, from which on every rank sees all of ten classes
  Config root = Config::from_text(config_yaml);
  Config partition = root.section("data").section("partition");
  const std::string name = partition.text("name", "iid", "");
  if (name == "shards") return {name, Shares::unlike};
  if (name != "dirichlet") return {name, Shares::alike};
  const double alpha = partition.real("alpha", nearly_alike, {}, "");
  return {name + ", alpha " + significant(alpha, 3), alpha < nearly_alike ? Shares::unlike : Shares::alike};
}

std::vector<std::string> row(const std::string& name, const Reached& reached) {
  return {"#   " + name, fixed(100.0 * reached.accuracy, 2), fixed(100.0 * reached.worst, 2),
          fixed(100.0 * reached.bytes, 1)};
}

/// What writes the same again.
std::string command_line(const AdviseArguments& arguments) {
  std::string text = "hearsay advise " + arguments.config.file.string() + " --bytes-fraction " +
                     significant(arguments.bytes_fraction, 6);
  for (const std::string& setting : arguments.config.set) text += " \\\n#   --set '" + setting + "'";
  return text;
}

std::string reasons(const AdviseArguments& arguments, const Situation& situation, const MeasuredChoice& choice) {
  const Reached& reached = choice.reached(situation.shares);
  const bool unlike = situation.shares == Shares::unlike;
  std::string text = "# " + command_line(arguments) + "\n# Shares: " + situation.partition +
                     (unlike ? ", unlike.\n" : ", taken for alike.\n");
  text += "# " + std::string(choice.name) + ", corrected, is the most accurate of those measured that need at most " +
          significant(100.0 * arguments.bytes_fraction, 3) + " % of D-PSGD's bytes";
  if (reached.bytes > within_budget * arguments.bytes_fraction)
    text += ".\n# None does: it is the cheapest, with " + significant(100.0 * reached.bytes, 3) + " %";
  text += ".\n";
  text += aligned_table({{"#   ", "averaged model, %", "worst rank, %", "bytes, %"},
                         row("this", reached),
                         row("D-PSGD without correction", plain_dpsgd(situation.shares))});
  text += "#   (an all-reduce: " + fixed(100.0 * all_reduce_accuracy(), 2) + " %)\n";
  text += "# Measured on MNIST with mnist_cnn, 8 ranks in a ring, batch 64 a rank, learning rate 0.05, 10 epochs, " +
          std::string(unlike ? "label-sorted" : "iid") +
          "\n# shares, three seeds: docs/results/skew.md. Another model, batch or graph moves the numbers.\n";
  if (unlike) text += "# Small batches are noisy: then try exchange.correction.strength: 0.2.\n";
  return text;
}

}  // namespace

int advise_command(const AdviseArguments& arguments) {
  if (!(arguments.bytes_fraction > 0.0 && arguments.bytes_fraction <= 1.0))
    throw ConfigError("--bytes-fraction " + significant(arguments.bytes_fraction, 6) +
                      ": a fraction of D-PSGD's bytes is in (0, 1]; 0.05 is a twentieth");
  const auto& [file, set] = arguments.config;
  const Situation now = situation(
      read_configuration(file, set, [](Config root) { return ChosenRun(std::move(root)); }).plan().config_yaml());
  const MeasuredChoice& choice = best_choice(arguments.bytes_fraction, now.shares);
  std::vector<std::string> settings = set;
  for (std::string& setting : choice.settings()) settings.push_back(std::move(setting));
  const std::string advised = read_configuration(file, settings, [](Config root) {
    static_cast<void>(ChosenRun(root));
    return root.given();
  });
  std::printf("%s%s", reasons(arguments, now, choice).c_str(), advised.c_str());
  return 0;
}

}  // namespace hearsay
