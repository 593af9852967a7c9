#include "python/core/member.hpp"

#include <hearsay_version.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "runtime/report/identity/run_id.hpp"

namespace hearsay::python {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Member::Member(const Job& job, const std::shared_ptr<Meetings>& meetings, std::shared_ptr<const JobPlan> plan,
               std::shared_ptr<Parameters> replica, Program program)
    : plan_(std::move(plan)),
      replica_(std::move(replica)),
      epoch_length_(program.iterations_per_epoch),
      interruption_(program.signals),
      job_(job),
      told_(program.told),
      communicator_(job.communicator([this] { together_.while_waiting(); })),
      place_{.meetings = meetings, .member = meetings->next_member(), .lockstep = plan_->in_step()},
      newcomers_(job, participant_, *meetings, plan_->on_failure.joins > 0),
      participant_(job.transport(), (require_same_job(program.buffers), plan_->topology(vertices())), *plan_->exchange,
                   *replica_, participant_options()),
      together_(participant_, *communicator_, place_, newcomers_),
      ready_(replica_->layout.count()),
      learning_rate_(unknown),
      consensus_distance_(unknown) {
  diary_.emplace(description(program), *plan_->exchange, participant_, job.host(), [this](const std::string& words) {
    const std::string who = this->ranks() > 1 ? "[rank " + std::to_string(rank()) + "] " : "";
    std::fprintf(stderr, "hearsay: %swarning: %s\n", who.c_str(), words.c_str());
  });
  diary_->hold(folder_);
  if (told_) return;
  participant_.communication().run([this] { diary_->begin(*communicator_); });
  diary_->open();
  diary_->watch();
}

void Member::begin_at(Iteration steps) {
  place_.done = began_at_ = steps;
  diary_->open();
  diary_->watch();
}

ParticipantOptions Member::participant_options() {
  const bool go_on = (job_.ranks() > 1 || plan_->on_failure.joins > 0) && job_.outlives_a_rank();
  return {.iterations_per_epoch = epoch_length_,
          .start_from_rank_0 = !told_,
          .failure_timeout = go_on ? plan_->on_failure.going_on() : std::chrono::nanoseconds{0},
          .spares = plan_->on_failure.joins,
          .vacant = plan_->on_failure.vacant,
          .others_began = told_ ? std::optional(told_->clocks_began) : std::nullopt,
          .interrupted = [this] { return interruption_.come() || place_.departed(); }};
}

std::string text_of(const Layout& layout) {
  std::string text;
  for (const Segment& s : layout.segments()) {
    text += s.name;
    for (const std::int64_t n : s.shape) text += ' ' + std::to_string(n);
    text += '\n';
  }
  return text;
}

namespace {

/// Throws ConfigError on all ranks where `text` is not everywhere what rank 0 has: none may wait for one whose program
/// has caught that.
void require_alike(Communicator& all, const std::string& text, const std::string& whose, const std::string& remedy) {
  std::string others = ranks_that_differ(all, text);
  std::uint64_t length = others.size();
  all.broadcast(std::as_writable_bytes(std::span(&length, 1)), 0);
  others.resize(length);
  all.broadcast(std::as_writable_bytes(std::span(others)), 0);
  if (!others.empty()) throw ConfigError("the " + whose + " of rank " + others + " " + remedy);
}

}  // namespace

/// Before anything is changed: what does not fit leaves no run folder. Runs `idle` of no participant yet. Who comes
/// later was asked at the door.
void Member::require_same_job(const std::string& buffers) {
  static_cast<void>(plan_->topology(vertices()));
  const auto before = job_.communicator();
  if (told_) {
    run_id_ = told_->run_id;
    folder_ = std::make_shared<RunFolder>(RunFolder::shared(plan_->report.directory, run_id_));
    return;
  }
  require_alike(*before, plan_->yaml, "configuration",
                "differs from that of rank 0; give all ranks the same file or dictionary");
  require_alike(*before, text_of(replica_->layout), "parameters",
                "have other names or shapes than those of rank 0; make the same model on every rank");
  require_alike(*before, buffers, "frozen parameters or buffers",
                "have other names, shapes or types than those of rank 0, or its parameters other types; make the same "
                "model on every rank");
  make_run_folder(*before);
}

/// Rank 0 makes it; where it cannot, all ranks say so, for none may wait for one whose program has caught that.
void Member::make_run_folder(Communicator& before) {
  std::exception_ptr failure;
  if (before.rank() == 0) {
    try {
      folder_ = std::make_shared<RunFolder>(plan_->report);
      run_id_ = folder_->id();
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  run_id_.resize(run_id_length);
  before.broadcast(std::as_writable_bytes(std::span(run_id_)), 0);
  if (failure) std::rethrow_exception(failure);
  if (run_id_.front() == '\0')
    throw DataError("rank 0 cannot use " + plan_->report.directory.string() + " as the run folder, and says why");
  if (!folder_ && plan_->on_failure.others_go_on)
    folder_ = std::make_shared<RunFolder>(RunFolder::shared(plan_->report.directory, run_id_));
}

RunDescription Member::description(const Program& program) const {
  RunDescription run{.report = plan_->report,
                     .run_id = run_id_,
                     .command = program.command,
                     .config_yaml = plan_->yaml,
                     .versions = program.versions,
                     .seed = plan_->seed,
                     .iterations = program.iterations,
                     .model = plan_->model,
                     .dataset = plan_->dataset,
                     .exchange = plan_->exchange_name};
  run.versions["hearsay"] = std::string(full_version);
  return run;
}

void Member::start() {
  if (place_.in_step)
    throw std::runtime_error("member.start(): step " + std::to_string(place_.done + 1) + " is not over yet");
  Ledger& ledger = participant_.ledger();
  if (first_ == TimePoint{}) {
    first_ = last_ = ledger.now();
    if (told_) first_ -= std::chrono::system_clock::now() - told_->training_began;
    diary_->start_clock();
    tell_where_it_begins();
  }
  std::ranges::fill(ready_, std::uint8_t{0});
  handed_on_ = ready_.size();
  place_.in_step = true;
  if (Trace* trace = diary_->trace()) trace->iteration(place_.done);
  participant_.start(own_steps());
  phase_start_ = ledger.now();
  charged_before_ = ledger.charged();
}

/// Training has begun: those who come later are let in.
void Member::tell_where_it_begins() {
  LateMembers* const late = job_.late_members();
  if (late == nullptr || plan_->on_failure.joins == 0) return;
  const auto now = std::chrono::system_clock::now();
  const Beginning here{
      .run_id = run_id_, .training_began = now, .clocks_began = now - participant_.ledger().since_start()};
  late->welcome(told_.value_or(here).packed());
}

// Handed on from the last segment to the first on every rank, whatever the order in which a rank's backward pass has
// them: collectives that begin in different orders would wait for each other.
void Member::gradient_ready(SegmentId segment) {
  if (!place_.in_step)
    throw std::runtime_error("member.gradient_ready() outside of a step; call member.start() before");
  if (segment >= ready_.size())
    throw std::runtime_error("member.gradient_ready(): there is no parameter number " + std::to_string(segment) +
                             " of " + std::to_string(ready_.size()));
  if (ready_[segment] != 0)
    throw std::runtime_error("the gradient of '" + replica_->layout[segment].name +
                             "' was made twice in one step, and has been sent already; where a step has several "
                             "backward passes say so: member.step(optimizer, backward_passes=2)");
  ready_[segment] = 1;
  if (Trace* trace = diary_->trace()) trace->gradient(segment, participant_.ledger().now());
  if (!participant_.exchange().capabilities().layer_wise) return;
  while (handed_on_ > 0 && ready_[handed_on_ - 1] != 0)
    participant_.gradient_ready(static_cast<SegmentId>(--handed_on_));
}

void Member::finish(std::optional<double> learning_rate) {
  if (!place_.in_step) throw std::runtime_error("member.finish() outside of a step; call member.start() before");
  Ledger& ledger = participant_.ledger();
  ledger.spend({.phase = Phase::compute, .from = phase_start_, .to = ledger.now()}, ledger.charged() - charged_before_);
  if (participant_.exchange().capabilities().layer_wise)
    while (handed_on_ > 0) participant_.gradient_ready(static_cast<SegmentId>(--handed_on_));
  learning_rate_ = learning_rate.value_or(unknown);
  participant_.finish(own_steps());
  phase_start_ = ledger.now();
  charged_before_ = ledger.charged();
}

void Member::stepped(double loss) {
  if (!place_.in_step) throw std::runtime_error("member.stepped() outside of a step; call member.start() before");
  Ledger& ledger = participant_.ledger();
  ledger.spend({.phase = Phase::optimizer, .from = phase_start_, .to = ledger.now()},
               ledger.charged() - charged_before_);
  participant_.stepped(own_steps());
  participant_.finite().require_so_far();
  place_.in_step = false;
  ++place_.done;
  last_ = ledger.now();
  diary_->iteration(progression(), loss);
  if (may_die() && reports()) diary_->take_over_folder();
}

std::uint64_t Member::replica_hash() const { return hearsay::replica_hash(replica_->values.span()); }

std::size_t Member::memory_bytes() const {
  const std::size_t neighbours = participant_.edges().neighbourhood().neighbours.size();
  return window_bytes(*plan_->exchange, replica_->layout, neighbours, ranks(), plan_->on_failure.joins) +
         plan_->exchange->kept_bytes(replica_->layout, neighbours, ranks());
}

std::vector<std::string> Member::warnings() const {
  std::vector<std::string> sentences = plan_->notes;
  std::ranges::copy(plan_->exchange->warnings(participant_.edges().topology()), std::back_inserter(sentences));
  if (plan_->on_failure.others_go_on && ranks() > 1 && !may_die())
    sentences.emplace_back(
        "train.on_failure: continue needs a launcher that leaves the others alone when a rank dies: `python3 -m "
        "hearsay launch --without-mpi --recover -n P …`, or `mpirun --enable-recovery`");
  return sentences;
}

}  // namespace hearsay::python