#include "runtime/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include "base/error.hpp"

namespace hearsay {
namespace {

std::string divergence_message(std::string reason, int rank, Iteration k, double epoch, double last_loss) {
  if (reason.ends_with('.')) reason.pop_back();
  const bool has_remedy = reason.find("Lower ") != std::string::npos;
  std::ostringstream text;
  text << "rank " << rank << " diverged at iteration " << k << " (epoch " << epoch << "): " << reason << "; ";
  if (k > 0)
    text << "the last finite loss was " << last_loss << " at iteration " << k - 1;
  else
    text << "there was no finite loss before it";
  if (!has_remedy) text << ". Lower optimizer.learning_rate or use optimizer.warmup_epochs";
  return text.str();
}

/// H; a budget of less than one round has none.
Iteration round_of(const RunLength& length) { return length.iterations < length.round ? 1 : length.round; }

}  // namespace

/// How far the job is when ranks begin nothing more: on average they have half a round before them then.
double Trainer::job_limit(const RunLength& length) const {
  return static_cast<double>(length.iterations) - static_cast<double>(round_of(length) - 1) / 2.0;
}

bool Trainer::is_spent(Iteration k, const RunLength& length) const {
  if (length.budget == RunLength::Budget::rank) return k >= length.iterations;
  return k % round_of(length) == 0 && progress(k) >= job_limit(length);
}

Iteration Trainer::run(const RunLength& length, const Observer& observe, const MayWait& may_wait) {
  for (Iteration k = done_; !is_spent(k, length); ++k) {
    try {
      last_loss_ = iterate(k, length);
    } catch (const DivergenceError& error) {
      throw DivergenceError(divergence_message(error.what(), parts_.rank, k, length.epoch(k), last_loss_));
    }
    done_ = k + 1;
    if (!observe(k, last_loss_)) return done_;
  }
  accompany(length, may_wait);
  return done_;
}

void Trainer::state(Archive& archive) {
  archive.value("iterations done", done_);
  archive.value("last loss", last_loss_);
  if (done_ < 0) archive.refuse("iterations done", "are " + std::to_string(done_));
  if (archive.loads()) resumed_at_ = done_;
}

// In steps as long as this rank's iterations were: its neighbours hear of it as often as before.
void Trainer::accompany(const RunLength& length, const MayWait& may_wait) {
  constexpr double least_s = 1e-4, most_s = 1.0;
  const Ledger& ledger = parts_.participant.ledger();
  const auto since = ledger.now();
  const double worked = std::chrono::duration<double>(since - began_).count();
  const double step =
      std::clamp(worked / static_cast<double>(std::max<Iteration>(1, done_ - resumed_at_)), least_s, most_s);
  for (Iteration k = done_; progress(k) < job_limit(length) && may_wait(); ++k) {
    serve(k);
    parts_.participant.pass_time(step);
    idle_ = ledger.now() - since;
  }
}

// What servers are asked for while they have nothing to compute, or after it.
void Trainer::serve(Iteration k) {
  served_ = k + 1;
  if (!parts_.participant.idle(k)) return;
  parts_.optimizer.step();
  parts_.participant.stepped(k);
}

void Trainer::settle() {
  parts_.participant.settle();
  if (!parts_.participant.is_sharded()) return;
  serve(std::max(done_, served_));
  parts_.participant.settle();
}

double Trainer::iterate(Iteration k, const RunLength& length) {
  const double epoch = length.epoch(length.budget == RunLength::Budget::rank ? k : progress(k));
  parts_.participant.start(k);
  double loss = 0.0;
  {
    const PhaseTimer timer(parts_.participant.ledger(), Phase::compute);
    loss = parts_.loss_and_gradient();
  }
  if (!std::isfinite(loss))
    throw DivergenceError(std::isnan(loss) ? "the loss is not a number" : "the loss is infinite");
  const double rate = parts_.learning_rate.at(epoch, length.epoch(length.iterations));
  parts_.participant.learning_rate(rate);
  parts_.participant.finish(k);
  {
    const PhaseTimer timer(parts_.participant.ledger(), Phase::optimizer);
    parts_.optimizer.set_learning_rate(rate);
    parts_.optimizer.step();
  }
  parts_.participant.stepped(k);
  return loss;
}

}  // namespace hearsay
