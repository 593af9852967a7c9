#include "runtime/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <string>

#include "base/error.hpp"

namespace hearsay {
namespace {

/// Adds what the training loop knows to what the rank has come upon in iteration k.
DivergenceError told_of_loop(const DivergenceError& error, int rank, Iteration k, double epoch, double last_loss) {
  std::ostringstream text;
  if (error.place == DivergenceError::Place::missing) text << "rank " << rank << " diverged at iteration " << k << ": ";
  text << error.finding << "; in epoch " << epoch << ", ";
  if (k > 0)
    text << "the last finite loss was " << last_loss << " at iteration " << k - 1;
  else
    text << "there was no finite loss before it";
  const std::string remedy =
      "lower optimizer.learning_rate, or exchange.mixing.gamma if the rule has one, or use optimizer.warmup_epochs";
  return DivergenceError(text.str(), DivergenceError::Place::said, {remedy, remedy});
}

/// H; a budget of less than one round has none.
Iteration round_of(const RunLength& length) { return length.iterations < length.round ? 1 : length.round; }

}  // namespace

Trainer::Trainer(Parts parts) : parts_(std::move(parts)) {
  parts_.participant.service().optimizer([this] { parts_.optimizer.step(); });
  parts_.participant.steps(parts_.optimizer.steps());
}

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
      throw told_of_loop(error, parts_.rank, k, length.epoch(k), last_loss_);
    }
    done_ = k + 1;
    if (!observe(k, last_loss_)) return done_;
  }
  const auto since = parts_.participant.ledger().now();
  parts_.participant.service().accompany([&] { return progress(done_) < job_limit(length) && may_wait(); });
  idle_ = parts_.participant.ledger().now() - since;
  return done_;
}

void Trainer::state(Archive& archive) {
  archive.value("iterations done", done_);
  archive.value("last loss", last_loss_);
  if (done_ < 0) archive.refuse("iterations done", "are " + std::to_string(done_));
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
  parts_.optimizer.set_learning_rate(rate);
  parts_.participant.steps(parts_.optimizer.steps());
  parts_.participant.finish(k);
  {
    const PhaseTimer timer(parts_.participant.ledger(), Phase::optimizer);
    parts_.optimizer.step();
  }
  parts_.participant.stepped(k);
  parts_.participant.finite().require_so_far();
  return loss;
}

}  // namespace hearsay
