// hearsay: the program. Command line in, exit code out (docs/guide/errors.md); each command has a file of its own.
#include <CLI/CLI.hpp>

#include <map>

#include "apps/hearsay/commands.hpp"
#include "apps/shared/failure.hpp"
#include "apps/shared/options.hpp"
#include "apps/shared/output.hpp"
#include "base/error.hpp"

namespace {

using namespace hearsay;

/// What the command line asks for.
struct CommandLine {
  TrainArguments train;
  LaunchArguments launch;
  std::optional<std::string> kind;
  std::vector<std::string> names;
  bool markdown = false;
  EvaluateArguments evaluate;
  TopologyArguments topology;
  std::vector<std::filesystem::path> runs;
  bool json = false;
  std::filesystem::path watched, closed;
  double every_s = 1.0;
  bool once = false;
  BenchCollectivesArguments collectives;
  SimulateArguments simulate;
  Words words;  ///< after the command
  BenchExchangesArguments exchanges;
  BenchTrainingArguments training;
  std::filesystem::path network_file = "network.yaml";
  PlanArguments plan;
  bool version = false;
};

void add_config(CLI::App& command, ConfigArguments& config) {
  command.add_option("CONFIG", config.file, "Configuration of the run (YAML)")->required();
  command.add_option("--set", config.set, "Change one key, as in --set trigger.horizon=0.95; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_progress(CLI::App& command, ProgressMode& progress) {
  const std::map<std::string, ProgressMode> modes{{"auto", ProgressMode::automatic},
                                                  {"bar", ProgressMode::bar},
                                                  {"lines", ProgressMode::lines},
                                                  {"off", ProgressMode::off}};
  command.add_option("--progress", progress, "Progress on stderr: auto, bar, lines or off")
      ->transform(CLI::Validator(
          [modes](std::string& mode) -> std::string {
            const auto known = modes.find(mode);
            if (known == modes.end()) return "'" + mode + "' is none of auto, bar, lines and off";
            mode = std::to_string(static_cast<int>(known->second));
            return {};
          },
          ""))
      ->type_name("MODE")
      ->default_str("auto");
}

void add_train(CLI::App& app, TrainArguments& train) {
  CLI::App& command = *app.add_subcommand("train", "Train as a configuration says, on all ranks of the job");
  add_config(command, train.config);
  command.get_option("CONFIG")->required(false);
  CLI::Option* resume =
      command
          .add_option("--resume", train.resume,
                      "Go on with the run of this folder from its newest complete checkpoint (train.checkpoint)")
          ->type_name("RUN")
          ->excludes("CONFIG");
  command.add_option("-o,--output", train.output, "Run folder; instead of report.directory")
      ->type_name("DIR")
      ->excludes(resume);
  CLI::Option* overwrite =
      command.add_flag("--overwrite", train.overwrite, "Replace the run that the run folder holds")->excludes(resume);
  command
      .add_flag("--continue", train.go_on,
                "Go on with the run that the run folder holds if it has a complete checkpoint, begin (anew) if not, do "
                "nothing if it has finished: a command that can be repeated until it succeeds")
      ->excludes(resume)
      ->excludes(overwrite);
  command
      .add_option(
          "--join", train.join,
          "Come to a job of this name that trains already (train.joins), with its CONFIG, and take a free place")
      ->type_name("JOB")
      ->excludes(resume)
      ->excludes(overwrite);
  add_progress(command, train.progress);
  CLI::Option* dry = command.add_flag("--dry-run", train.dry_run,
                                      "Say what the run would be (ranks, edges, parameters, bytes); train nothing");
  command.add_option("-n,--ranks", train.ranks, "Ranks of a dry run; as many as were started if left out")
      ->type_name("P");
  command.add_flag("--dump-config", train.dump_config, "Print the complete configuration, defaults included, and stop")
      ->excludes(dry);
  command.footer(
      "Examples:\n"
      "  hearsay train configs/digits/eventgrad.yaml                    one process\n"
      "  mpirun -n 8 hearsay train configs/mnist/eventgrad-ring.yaml    eight\n"
      "  hearsay launch -n 8 hearsay train configs/mnist/eventgrad-ring.yaml    eight on this machine, without MPI\n"
      "  mpirun -n 4 hearsay train configs/digits/eventgrad.yaml \\\n"
      "      --set trigger.horizon=0.95 --set train.epochs=2 --output runs/shorter\n"
      "  hearsay train configs/digits/dpsgd.yaml --dry-run -n 16\n"
      "  mpirun -n 4 hearsay train --resume runs/shorter --set train.epochs=4\n"
      "Ctrl-C, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU end a run in good order: a checkpoint, the reports, exit "
      "code\n128 + the signal's number. A second Ctrl-C or SIGTERM, or SIGQUIT, ends it at once. To mpirun send "
      "SIGUSR1: it "
      "leaves\nranks one second after SIGTERM, and all the time they need after SIGUSR1.\n"
      "At the end the averaged model is in the run folder: state_dict.pt for Python, with LibTorch's own name for "
      "every\n"
      "parameter, net.load_state_dict(torch.load('state_dict.pt')), and model.pt for `hearsay evaluate`,\n"
      "train.initial_model and torch.jit.load('model.pt').");
}

void add_launch(CLI::App& app, LaunchArguments& launch) {
  CLI::App& command =
      *app.add_subcommand("launch", "Start a program on several processes of this machine, without MPI");
  command.add_option("-n,--ranks", launch.ranks, "Number of processes")->type_name("P")->required();
  command.add_flag("--recover", launch.recover,
                   "A process that dies ends no other; for train.on_failure: continue and loops like it");
  command.add_option("--job", launch.job, "A name by which others may join the job (train.joins)")->type_name("NAME");
  command.prefix_command();
  command.footer(
      "PROGRAM and its arguments come last. The processes are connected by shared memory; each computes with one "
      "thread\nunless OMP_NUM_THREADS says otherwise. Exit code: that of the first process that fails, 128+n after "
      "signal n.\nExamples:\n"
      "  hearsay launch -n 4 hearsay train configs/digits/eventgrad.yaml\n"
      "  hearsay launch -n 4 python3 train.py\n"
      "  hearsay launch -n 4 --recover --job night hearsay train CONFIG    others join: hearsay train CONFIG --join "
      "night\n"
      "On several hosts every process is started with HEARSAY_RANK, HEARSAY_RANKS and HEARSAY_RENDEZVOUS, a folder "
      "that\nall see; or by torchrun, accelerate or mpirun as usual.");
}

void add_evaluate(CLI::App& app, EvaluateArguments& evaluate) {
  CLI::App& command = *app.add_subcommand("evaluate", "Score a run's averaged model on its test set");
  command.add_option("RUN", evaluate.run, "Run folder")->required();
  command.add_option("--model", evaluate.model, "Another model of this kind, e.g. one rank's: RUN/model.rank0001.pt")
      ->type_name("FILE");
  command.add_flag("--json", evaluate.json, "JSON instead of text");
  command.footer("Example:\n  hearsay evaluate runs/eventgrad-mnist_cnn");
}

void add_list_and_describe(CLI::App& app, CommandLine& line) {
  CLI::App& list = *app.add_subcommand("list", "List what a configuration can choose from");
  list.add_option(
      "KIND", line.kind,
      "model, dataset, partition, optimizer, schedule, graph, weights, exchange, mixing, correction, trigger, "
      "selector, codec or quantiser; all of them if left out");
  list.footer("Examples:\n  hearsay list\n  hearsay list trigger");
  CLI::App& describe = *app.add_subcommand("describe", "Show equation, keys, defaults, ranges, cost and citation");
  describe
      .add_option("NAME", line.names, "Names that `hearsay list` shows, or the sections train, data, optimizer, report")
      ->required();
  describe.add_flag("--markdown", line.markdown, "Tables of whole KINDs, such as trigger, for a page in Markdown");
  describe.footer(
      "Examples:\n  hearsay describe adaptive\n  hearsay describe ring metropolis\n  hearsay describe train");
}

void add_topology(CLI::App& app, TopologyArguments& topology) {
  CLI::App& command = *app.add_subcommand("topology", "Show graph, weights and consensus rate of a configuration");
  add_config(command, topology.config);
  command.add_option("-n,--ranks", topology.ranks, "Number of ranks")->type_name("P")->required();
  command.add_option("--dot", topology.dot_file, "The graph for Graphviz, in FILE; without one only that, on stdout")
      ->type_name("FILE")
      ->expected(0, 1)
      ->default_str("-");
  command.add_flag("--weights", topology.weights, "All rows of W; otherwise those of at most 8 ranks");
  command.footer(
      "Examples:\n"
      "  hearsay topology configs/mnist/eventgrad-ring.yaml -n 8\n"
      "  hearsay topology configs/mnist/eventgrad-ring.yaml -n 16 --set topology.graph.name=torus\n"
      "  hearsay topology configs/mnist/eventgrad-ring.yaml -n 8 --dot | dot -Tsvg > ring.svg");
}

void add_compare(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand("compare", "Compare finished runs in one table; the first is the baseline");
  command.add_option("RUN", line.runs, "Run folders")->required();
  command.add_flag("--json", line.json, "JSON instead of a table");
  command.footer("Example:\n  hearsay compare runs/dpsgd runs/eventgrad runs/sparse-eventgrad");
}

void add_watch(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand("watch", "Watch a run from its folder: ranks, loss, bytes, stragglers");
  command.add_option("RUN", line.watched, "Run folder; the run does not notice")->required();
  command.add_option("--every", line.every_s, "Seconds between two looks")->type_name("S")->capture_default_str();
  command.add_flag("--once", line.once, "One look");
  command.footer(
      "Ranks write a record every report.every_iterations iterations, to the disk about once a second. A run that has\n"
      "written nothing for five minutes and has no summary is probably dead.\n"
      "Example:\n  hearsay watch runs/eventgrad-mnist_cnn");
}

void add_close(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand("close", "Write the summary of a run that was killed: status killed");
  command.add_option("RUN", line.closed, "Run folder; a run that is alive is refused")->required();
  command.footer(
      "scripts/launch does this for a job that a signal has ended. Example:\n  hearsay close runs/eventgrad-mnist_cnn");
}

void add_bench_exchanges(CLI::App& bench, BenchExchangesArguments& arguments) {
  CLI::App& command =
      *bench.add_subcommand("exchanges", "an iteration of every exchange on noise, held against its prediction");
  command.add_option("--values", arguments.values, "Parameters; 25e6 is 25 million")
      ->type_name("N")
      ->default_str("1e6");
  command.add_option("--segments", arguments.segments, "Segments they are cut into")
      ->type_name("S")
      ->capture_default_str();
  command.add_option("--density", arguments.density, "Fraction that sparse algorithms send, in (0, 1]")
      ->type_name("RHO")
      ->capture_default_str();
  command.add_option("--iterations", arguments.iterations, "Timed iterations of each algorithm, at most")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--seconds", arguments.seconds, "No more iterations of an algorithm after so many seconds")
      ->type_name("S")
      ->capture_default_str();
  command.add_option("--only", arguments.only, "Only algorithms whose name contains this")->type_name("TEXT");
  command.add_option("--network", arguments.network, "What `hearsay probe` has written; measured if left out")
      ->type_name("FILE");
  command.footer("Example:\n  mpirun -n 4 --map-by node hearsay bench exchanges --values 25e6 --density 0.001");
}

void add_bench_training(CLI::App& bench, BenchTrainingArguments& arguments) {
  CLI::App& command = *bench.add_subcommand(
      "training", "a training step under every exchange, beside the same step in a bare LibTorch loop");
  command.add_option("--model", arguments.model, "Name of a model")->type_name("NAME")->capture_default_str();
  command
      .add_option("--device", arguments.device,
                  "Where replicas live: cpu, or cuda, whose GPUs the ranks of a host share")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--batch", arguments.batch, "Batch of a rank")->type_name("B")->capture_default_str();
  command.add_option("--exchange", arguments.exchanges, "Only these, each NAME or NAME:SCHEDULE")
      ->type_name("NAME,…")
      ->delimiter(',');
  command.add_option("--set", arguments.settings, "Overrides a key for all of them")->type_name("KEY=VALUE");
  command.add_option("--iterations", arguments.iterations, "Iterations of a block")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--blocks", arguments.blocks, "Pairs of blocks, without and with Hearsay")
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", arguments.json, "One JSON object a line instead of a table");
  command.footer(
      "Examples:\n"
      "  mpirun -n 2 hearsay bench training\n"
      "  mpirun -n 4 hearsay bench training --model mnist_cnn --batch 64 --exchange eventgrad:asynchronous,dpsgd");
}

void add_bench(CLI::App& app, CommandLine& line) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure this machine; alone: list what can be measured");
  BenchCollectivesArguments& arguments = line.collectives;
  CLI::App& command = *bench.add_subcommand("collectives",
                                            "dense and sparse all-reduces between all ranks of the MPI job, checked "
                                            "and held against the α-β model");
  command.add_option("--values", arguments.values, "Lengths of the gradient; 25e6 is 25 million")
      ->type_name("M,…")
      ->delimiter(',')
      ->default_str("1e6,25e6");
  command.add_option("--density", arguments.densities, "Fractions of it that every rank contributes, in (0, 1]")
      ->type_name("RHO,…")
      ->delimiter(',')
      ->default_str("0.001,0.01");
  command.add_option("--calls", arguments.calls, "Timed calls of each algorithm, at most")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--seconds", arguments.seconds, "No more calls of an algorithm after so many seconds (but five)")
      ->type_name("S")
      ->capture_default_str();
  command.add_flag("--json", arguments.json, "JSON instead of tables");
  command.footer(
      "The first call of each algorithm is checked against an oracle; a wrong result is exit code 1.\n"
      "docs/guide/predict.md explains the columns.\n"
      "Examples:\n"
      "  mpirun -n 4 hearsay bench collectives\n"
      "  mpirun -n 8 hearsay bench collectives --values 25e6 --density 0.001,0.01,0.1 --calls 50 --json");
  add_bench_exchanges(bench, line.exchanges);
  add_bench_training(bench, line.training);
  bench.require_subcommand(0, 1);
  bench.allow_extras();  // a name that is not known is refused by bench_command, which says the known ones
  bench.footer("Examples:\n  hearsay bench\n  mpirun -n 4 hearsay bench collectives");
}

void add_probe_and_plan(CLI::App& app, CommandLine& line) {
  CLI::App& probe = *app.add_subcommand("probe", "Measure the network and the machines of the MPI job");
  probe.add_option("-o,--output", line.network_file, "What was measured, for `hearsay plan`")
      ->type_name("FILE")
      ->default_str("network.yaml");
  probe.footer("Example:\n  mpirun -n 4 --map-by node hearsay probe");
  CLI::App& plan = *app.add_subcommand("plan", "Predict what an iteration of every algorithm takes on a network");
  add_config(plan, line.plan.config);
  plan.add_option("--network", line.plan.network, "What `hearsay probe` has written")
      ->type_name("FILE")
      ->default_str("network.yaml");
  plan.add_option("-n,--ranks", line.plan.ranks, "Number of ranks; as many as were probed if left out")->type_name("P");
  plan.add_option("--hosts", line.plan.hosts, "Number of hosts; filled as they were probed if left out")
      ->type_name("M");
  plan.add_option("--density", line.plan.density, "Fraction that sparse algorithms send, in (0, 1]")
      ->type_name("RHO")
      ->capture_default_str();
  plan.add_option("--events", line.plan.events, "Fraction of the segments whose trigger fires")
      ->type_name("F")
      ->capture_default_str();
  plan.add_option("--compute", line.plan.compute_s, "Seconds of a forward and backward pass; measured if left out")
      ->type_name("S");
  plan.footer("Example:\n  hearsay plan configs/mnist/dpsgd-ring.yaml --network network.yaml -n 32 --density 0.001");
}

int run_bench(const CLI::App& bench, const CommandLine& line, JobSlot& job) {
  if (bench.got_subcommand("collectives")) return bench_collectives_command(line.collectives, line.words, job);
  if (bench.got_subcommand("exchanges")) return bench_exchanges_command(line.exchanges, line.words, job);
  if (bench.got_subcommand("training")) return bench_training_command(line.training, line.words, job);
  std::vector<BenchName> benches;
  for (const CLI::App* known : bench.get_subcommands(nullptr))
    benches.push_back({known->get_name(), known->get_description()});
  return bench_command(benches, bench.remaining());
}

/// The command that was asked for.
int run_command(const CLI::App& app, CommandLine& line, JobSlot& job) {
  if (line.version) return version_command();
  if (app.got_subcommand("train")) return train_command(line.train, job);
  if (app.got_subcommand("launch")) {
    line.launch.words = app.get_subcommand("launch")->remaining();
    return launch_command(line.launch);
  }
  if (app.got_subcommand("close")) return close_command(line.closed);
  if (app.got_subcommand("evaluate")) return evaluate_command(line.evaluate);
  if (app.got_subcommand("list")) return list_command(line.kind);
  if (app.got_subcommand("describe")) return describe_command(line.names, line.markdown);
  if (app.got_subcommand("topology")) return topology_command(line.topology);
  if (app.got_subcommand("compare")) return compare_command(line.runs, line.json);
  if (app.got_subcommand("watch")) return watch_command(line.watched, line.every_s, line.once);
  if (app.got_subcommand("simulate")) return simulate_command(line.simulate.simulator, line.words);
  if (app.got_subcommand("bench")) return run_bench(*app.get_subcommand("bench"), line, job);
  if (app.got_subcommand("probe")) return probe_command(line.network_file, line.words, job);
  if (app.got_subcommand("plan")) return plan_command(line.plan);
  throw ConfigError(
      "no command; one of train, launch, evaluate, list, describe, topology, compare, watch, close, bench, probe, "
      "plan, "
      "simulate (see hearsay --help)");
}

std::string joined(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i == 0 ? "" : " ") + std::string(argv[i]);
  return text;
}

int run(int argc, char** argv, JobSlot& job) {
  CLI::App app(
      "Decentralised, event-triggered training: every process trains a replica and sends its neighbours\n"
      "only what is news.",
      "hearsay");
  CommandLine line;
  line.train.command = joined(argc, argv);
  if (argc > 2) line.words.assign(argv + 2, argv + argc);
  app.add_flag("--version", line.version, "Version, commit, MPI, LibTorch, compiler and build type");
  add_train(app, line.train);
  add_launch(app, line.launch);
  add_evaluate(app, line.evaluate);
  add_list_and_describe(app, line);
  add_topology(app, line.topology);
  add_compare(app, line);
  add_watch(app, line);
  add_close(app, line);
  add_bench(app, line);
  add_simulate_options(*app.add_subcommand("simulate", "Run a configuration on a simulated cluster"), line.simulate);
  add_probe_and_plan(app, line);
  app.require_subcommand(0, 1);
  app.footer(
      "`hearsay COMMAND --help` explains a command. Exit codes: 0 done, 1 bug, 2 usage or configuration,\n"
      "3 data or file, 4 communication, 5 diverged, 128+n stopped by signal n.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& request) {
    if (request.get_exit_code() == 0) return app.exit(request);  // --help
    const auto commands = app.get_subcommands();
    const std::string help = "hearsay" + (commands.empty() ? "" : " " + commands.front()->get_name()) + " --help";
    throw ConfigError(std::string(request.what()) + " (see " + help + ")");
  }
  return run_command(app, line, job);
}

}  // namespace

int main(int argc, char** argv) {
  JobSlot job;
  try {
    const int code = run(argc, argv, job);
    if (code == 0) require_printed();
    note_exit_code(code);
    return code;
  } catch (...) {
    return report_failure(failure_in_flight(), job.get());
  }
}
