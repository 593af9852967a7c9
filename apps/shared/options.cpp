#include "apps/shared/options.hpp"

#include "base/config/yaml.hpp"

namespace hearsay {

std::vector<std::string> SimulateArguments::assignments() const {
  std::vector<std::string> all = set;
  if (output) all.push_back("report.directory=" + yaml_text(*output));
  if (overwrite) all.emplace_back("report.overwrite=true");
  return all;
}

void add_simulate_options(CLI::App& command, SimulateArguments& arguments) {
  command.add_option("CONFIG", arguments.config, "Configuration of the run (YAML)")->required();
  command.add_option("--platform", arguments.platform, "The cluster, as SimGrid describes it; see configs/platforms/")
      ->type_name("FILE")
      ->required();
  command.add_option("-n,--ranks", arguments.ranks, "Number of ranks, one on each host of the platform")
      ->type_name("P")
      ->check(CLI::PositiveNumber)
      ->required();
  command.add_option("--set", arguments.set, "Change one key, as in --set simulate.compute_s=0.2; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--compute-s",
          [&arguments](const std::string& seconds) { arguments.set.push_back("simulate.compute_s=" + seconds); },
          "Seconds that a rank computes in one iteration; short for --set simulate.compute_s=S")
      ->type_name("S");
  command.add_option("-o,--output", arguments.output, "Run folder; instead of report.directory")->type_name("DIR");
  command.add_flag("--overwrite", arguments.overwrite, "Replace the run that the run folder holds");
  command.add_option("--simulator", arguments.simulator, "The program that simulates, if it is not found by itself")
      ->type_name("PROGRAM");
  command.footer(
      "All ranks run in one process, in simulated time: the same command gives the same run, to the last bit,\n"
      "asynchronous ones included. Needs the build of the preset `simulator` (docs/guide/simulate.md).\n"
      "Examples:\n"
      "  hearsay simulate configs/simulate/straggler.yaml --platform configs/platforms/ethernet-1g-32.xml -n 32\n"
      "  hearsay simulate configs/simulate/gtopk.yaml --platform configs/platforms/ethernet-1g-32.xml -n 32 \\\n"
      "      --compute-s 0 --set simulate.values=250000 --set simulate.scale=100");
}

}  // namespace hearsay
