// hearsay train CONFIG: the chosen run and the session, put together.
#include <hearsay_version.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "apps/hearsay/commands.hpp"
#include "apps/hearsay/views/progress.hpp"
#include "apps/shared/chosen_run.hpp"
#include "apps/shared/configuration.hpp"
#include "apps/shared/continuation.hpp"
#include "apps/shared/failure.hpp"
#include "apps/shared/launch.hpp"
#include "apps/shared/output.hpp"
#include "apps/shared/train_report.hpp"
#include "base/config/yaml.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/text/foreign_text.hpp"
#include "runtime/job/start.hpp"
#include "runtime/job/start_watch.hpp"
#include "runtime/training/dry_run.hpp"
#include "runtime/training/process/same_run.hpp"
#include "runtime/training/session.hpp"

namespace hearsay {
namespace {

ChosenRun read_run(const ConfigArguments& arguments, const std::vector<std::string>& more = {}) {
  std::vector<std::string> assignments = arguments.set;
  assignments.insert(assignments.end(), more.begin(), more.end());
  return read_configuration(arguments.file, assignments, [](Config config) { return ChosenRun(std::move(config)); });
}

/// What may change when a run goes on: how long it goes on, and what it says of itself.
void require_resumable(const std::vector<std::string>& assignments) {
  constexpr std::array<std::string_view, 7> keys{
      "train.epochs",     "train.iterations", "train.seconds",    "train.evaluate_every_epochs",
      "train.checkpoint", "train.threads",    "report.save_model"};
  for (const std::string& assignment : assignments) {
    const std::string_view key = std::string_view(assignment).substr(0, assignment.find('='));
    const bool known = std::ranges::any_of(keys, [&](std::string_view may) {
      return key == may || (key.starts_with(may) && key.size() > may.size() && key[may.size()] == '.');
    });
    if (known) continue;
    std::string all;
    for (const std::string_view may : keys) all += (all.empty() ? "" : ", ") + std::string(may);
    throw ConfigError("--set " + assignment + ": a run that is resumed keeps its configuration; it may change " + all +
                      ". Start a new run for another configuration (train.initial_model starts from a model)");
  }
}

ChosenRun read_resumed_run(const TrainArguments& arguments) {
  require_resumable(arguments.config.set);
  const std::filesystem::path file = *arguments.resume / "config.yaml";
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw ConfigError("--resume " + arguments.resume->string() + ": there is no config.yaml, so it is no run folder");
  return read_run({.file = file, .set = arguments.config.set},
                  {"report.directory=" + yaml_text(arguments.resume->string())});
}

ChosenRun read_run(const TrainArguments& arguments) {
  if (arguments.resume) return read_resumed_run(arguments);
  if (arguments.config.file.empty())
    throw ConfigError("no CONFIG: name the configuration of the run, or --resume RUN (see hearsay train --help)");
  std::vector<std::string> more;
  if (arguments.output) more.push_back("report.directory=" + yaml_text(*arguments.output));
  if (arguments.overwrite) more.emplace_back("report.overwrite=true");
  return read_run(arguments.config, more);
}

int dry_run_command(const TrainArguments& arguments, const Job& job) {
  const int ranks = arguments.ranks.value_or(job.ranks());
  std::string text;
  const int code = attempt_together(job, [&] {
    require_ranks(ranks);
    const ChosenRun run = read_run(arguments);
    const Topology topology = run.plan().topology(ranks);
    if (job.rank() != 0) return;
    text = dry_run_text(dry_run(run.plan(), ranks), topology);
    for (const std::string& warning : warnings_of(run.plan().parts(), topology)) say("warning:", warning);
  });
  if (code == 0) print(text);
  return code;
}

/// --continue: what it comes to, a start or a resumption. Nothing, and the exit code, where that is all. Collective.
std::optional<TrainArguments> continued(TrainArguments arguments, const Job& job, int& code) {
  std::optional<ChosenRun> run;
  EarlierPart found;
  code = attempt_together(job, [&] {
    run.emplace(read_run(arguments));
    if (job.rank() == 0) found = find_earlier_part(run->plan());
  });
  if (code != 0) return std::nullopt;
  const std::filesystem::path& directory = run->plan().report().directory;
  const Continuation next = continuation(job, run->plan(), found);
  if (next == Continuation::finished) {
    if (job.rank() == 0) print(shown(directory.string()) + ": the run has finished, there is nothing to continue\n");
    return std::nullopt;
  }
  if (next == Continuation::resume) {
    arguments.resume = directory;
    arguments.config = {};
    return arguments;
  }
  arguments.overwrite = true;  // at most a run that has left no complete checkpoint
  if (job.rank() == 0 && !found.run_id.empty())
    say("hearsay: note:", directory.string() + ": no complete checkpoint is there, the run begins anew");
  return arguments;
}

/// What is wrong here differs from process to process, so each says it.
std::unique_ptr<Job> started_job() try {
  return start_job({.build = std::string(full_version)});
} catch (const Error& error) {
  say("hearsay:", error.what());
  note_exit_code(static_cast<int>(error.code()));
  leave(static_cast<int>(error.code()));
}

/// Before training, because a rank has died.
void say_that_it_ends(const std::string& words) {
  if (!words.empty()) say("hearsay:", words);
  note_exit_code(static_cast<int>(ExitCode::communication));
}

/// A process that fails to join, or leaves what it has joined, ends nobody but itself.
[[noreturn]] void leave_alone(const Job* job) {
  const Failure failure = failure_in_flight();
  if (job != nullptr) job->late_members()->close_places();
  say("hearsay:", failure.message);
  note_exit_code(failure.code);
  leave(failure.code);
}

/// Ends the process of the rank that has reported.
[[noreturn]] void leave_written(const Summary& summary) {
  try {
    require_all_written(summary);
    require_printed();
  } catch (...) {
    const Failure failure = failure_in_flight();
    say("hearsay:", failure.message);
    note_exit_code(failure.code);
    leave(failure.code);
  }
  note_exit_code(0);
  leave(0);
}

void warn(const Job& job, const std::string& words) {
  const std::string who = job.ranks() > 1 ? "[rank " + std::to_string(job.rank()) + "] " : "";
  say("hearsay: " + who + "warning:", words);
}

/// After all that can be wrong before. `folder`: of rank 0.
int train_in_folder(const TrainArguments& arguments, const RunPlan& plan, std::shared_ptr<RunFolder> folder,
                    const Job& job, StartWatch& start) {
  const OnFailure& members = plan.parts().on_failure;
  const bool goes_on = members.others_go_on && (job.ranks() > 1 || members.joins > 0);
  const bool recovers = goes_on && job.outlives_a_rank();
  // Where ranks may die, any of them may have to tell.
  ProgressDisplay display(job.rank() == 0 || recovers ? arguments.progress : ProgressMode::off, stderr);
  const RunPlan::Parts& parts = plan.parts();
  if (job.rank() == 0)
    for (const std::string& warning : warnings_of(parts, plan.topology(job.ranks())))
      display.say("warning: " + warning);
  if (job.rank() == 0 && goes_on && !recovers)
    display.say(
        "warning: train.on_failure: continue needs mpirun --enable-recovery, with which scripts/launch starts it; as "
        "it is, the launcher ends the job when a rank dies. `hearsay launch --recover` needs no mpirun");
  const auto survived = [&](const Summary* summary) {
    if (summary == nullptr) leave(0);
    display.finish();
    print(outcome_text(*summary, parts.report.directory, parts.save_model));
    leave_written(*summary);
  };
  try {
    const Summary summary = train(
        job, plan,
        {.command = arguments.command,
         .progress = [&](const Progress& progress) { display.update(progress); },
         .evaluated = [&](const EvaluationRecord& record) { display.evaluated(record); },
         .warned = [&](const std::string& words) { warn(job, words); },
         .folder = std::move(folder),
         .resume = arguments.resume.has_value(),
         .resumed = [&](const std::string& words) { display.say(words); },
         .begun = [&] { start.end(); },
         .survived = recovers ? survived : std::function<void(const Summary*)>{},
         .joined =
             [&](const std::string& words) { say("hearsay: [rank " + std::to_string(job.rank()) + "]", words); }});
    display.finish();
    if (job.rank() == 0) print(outcome_text(summary, parts.report.directory, parts.save_model));
    return attempt_together(job, [&] { require_all_written(summary); });
  } catch (const TakenForDead& alone) {
    if (!recovers) throw;
    const Failure failure = failure_in_flight();
    say("hearsay: [rank " + std::to_string(job.rank()) + "]", alone.what());
    leave(failure.code);
  }
}

int join_command(const TrainArguments& arguments, JobSlot& job) try {
  const ChosenRun run = read_run(arguments);
  run.check();
  if (run.plan().parts().on_failure.joins == 0)
    throw ConfigError("--join " + *arguments.join +
                      ": a job that others may join has train.joins in its configuration, and on_failure: continue");
  StartWatch start(say_that_it_ends);
  job = join_job(*arguments.join, configuration_hash(run.plan()), {.build = std::string(full_version)});
  return train_in_folder(arguments, run.plan(), nullptr, *job, start);
} catch (const DivergenceError&) {
  throw;
} catch (...) {
  leave_alone(job.get());
}

}  // namespace

void require_ranks(int ranks) {
  if (ranks < 1) throw ConfigError("-n " + std::to_string(ranks) + ": a job has at least 1 rank");
  if (ranks > most_ranks) throw ConfigError("-n " + std::to_string(ranks) + ": a job has at most 1,000,000 ranks");
}

Topology planned_topology(const ConfigArguments& config, int ranks) { return read_run(config).plan().topology(ranks); }

PlannedModel planned_model(const ConfigArguments& config, int ranks) {
  const ChosenRun run = read_run(config);
  Config ring = Config::from_text("graph: {name: ring}");
  const bool has_graph = run.plan().parts().exchange->laws().along_graph;
  Topology topology = has_graph ? run.plan().topology(ranks) : TopologyPlan(ring).build(run.plan().ranks(ranks));
  MeasuredModel measured = measure_model(run.plan(), ranks);
  return {.layout = std::move(measured.layout), .topology = std::move(topology), .compute_s = measured.step_s};
}

int train_command(const TrainArguments& given, JobSlot& job) {
  default_to_one_thread();
  TrainArguments arguments = given;
  if (arguments.ranks && !arguments.dry_run) {
    const std::string ranks = std::to_string(*arguments.ranks);
    throw ConfigError("-n " + ranks + ": is the size of a --dry-run. Ranks are started with `hearsay launch -n " +
                      ranks + " hearsay train …` or `mpirun -n " + ranks + " hearsay train …`");
  }
  if (arguments.dump_config) {
    const std::string yaml = read_run(arguments).plan().config_yaml();
    if (launched_rank() == 0) std::printf("%s", yaml.c_str());  // to be read back as it is
    return 0;
  }
  if (arguments.join) return join_command(arguments, job);
  StartWatch start(say_that_it_ends);
  job = started_job();
  if (arguments.dry_run) return dry_run_command(arguments, *job);
  if (arguments.go_on) {
    int code = 0;
    auto settled = continued(std::move(arguments), *job, code);
    if (!settled) return code;
    arguments = std::move(*settled);
  }

  // Whatever can be wrong before ranks start to talk to each other comes to light here.
  std::optional<ChosenRun> run;
  const int code = attempt_together(*job, [&] {
    run.emplace(read_run(arguments));
    static_cast<void>(run->plan().topology(job->ranks()));
    run->check();
  });
  if (code != 0) return code;
  require_same_run(*job->communicator(), run->plan().config_yaml());  // before `--overwrite` takes an earlier run away
  std::shared_ptr<RunFolder> folder;                                  // rank 0's, until the run has ended
  const int folder_code = attempt_together(*job, [&] {
    if (job->rank() != 0) return;
    if (arguments.resume)
      folder = std::make_shared<RunFolder>(RunFolder::resumed(run->plan().report().directory));
    else
      folder = std::make_shared<RunFolder>(run->plan().report());
  });
  if (folder_code != 0) return folder_code;

  return train_in_folder(arguments, run->plan(), std::move(folder), *job, start);
}

}  // namespace hearsay
