#include "runtime/failure/on_failure.hpp"

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace hearsay {

namespace {

OnFailure read_going_on(Config& train, const ExchangePlan& exchange) {
  const bool go_on =
      train.choice(
          "on_failure", "abort", {"abort", "continue"},
          "what a rank that dies is to the others. abort: the end of the job, which scripts/launch --restarts "
          "begins again from the newest checkpoint; continue: they go on without it and share what is left of "
          "its work (asynchronous dpsgd, eventgrad and gossip_outer; started by scripts/launch, which asks for mpirun "
          "--enable-recovery, or by hearsay launch --recover)") == "continue";
  const double timeout_s =
      train.real("failure_timeout_s", 60.0, Range::between(0.5, 1e6),
                 "a rank that was silent for so long is dead (continue), or ends the job for which "
                 "it stands still (abort); longer than the longest time for which a rank may be "
                 "stopped or starved");
  train.require(!go_on || exchange.survives_deaths(), "on_failure",
                "continue needs ranks that wait for nobody: exchange dpsgd, eventgrad or gossip_outer with schedule: "
                "asynchronous. Others end with the rank that dies: take abort, and scripts/launch --restarts");
  return {.others_go_on = go_on, .timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(timeout_s * 1e9))};
}

void read_joins(Config& train, OnFailure& read) {
  const auto joins = train.integer(
      "joins", 0, Range::between(0, 10'000),
      "on_failure: continue, without MPI: so many processes may come later (`hearsay train --join`); each "
      "takes a vertex that is vacant, or a dead rank's, with a neighbour's model and a share of the data");
  const auto vacant =
      train.integer("vacant", 0, Range::between(0, 10'000),
                    "vertices of the graph that are empty at the start, beside those of the processes that are "
                    "started: for those who come later; their shares of the data wait for them");
  train.require(joins == 0 || read.others_go_on, "joins", "who comes later needs on_failure: continue");
  train.require(vacant <= joins, "vacant",
                "a vertex that is empty is for somebody who comes later: let train.joins be as many, or more");
  train.require(vacant == 0 || read.spares == 0, "vacant",
                "spares would take the empty vertices at once: start more processes instead, or leave spares out");
  read.joins = static_cast<int>(joins);
  read.vacant = static_cast<int>(vacant);
}

}  // namespace

OnFailure read_on_failure(Config& train, const ExchangePlan& exchange) {
  OnFailure read = read_going_on(train, exchange);
  const auto spares =
      train.integer("spares", 0, Range::between(0, 10'000),
                    "on_failure: continue: of the processes that are started so many, the last, do not train before a "
                    "rank has died; then one of them takes its place, with a neighbour's model and its share of data");
  train.require(spares == 0 || read.others_go_on, "spares",
                "spares take the places of ranks that have died: they need on_failure: continue, without which a death "
                "ends the job");
  read.spares = static_cast<int>(spares);
  read_joins(train, read);
  return read;
}

OnFailure read_without_spares(Config& train, const ExchangePlan& exchange) {
  OnFailure read = read_going_on(train, exchange);
  read_joins(train, read);
  return read;
}

int OnFailure::ranks(int processes) const {
  if (spares == 0 || spares < processes) return processes - spares + vacant;
  throw ConfigError("train.spares: " + std::to_string(spares) + " of " + std::to_string(processes) +
                    " processes would wait for somebody's place, and nobody train; start more of them (-n), or have "
                    "fewer spares");
}

}  // namespace hearsay
