#include "apps/simulator/failures.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"

namespace hearsay {
namespace {

/// A rank fails again only after it has come back.
void require_order(Config& failure, const std::vector<SimulatedFailure>& before, const SimulatedFailure& next) {
  failure.require(next.back_at_s > next.at_s, "back_at_s", "a rank comes back after it has failed (0: never)");
  for (const SimulatedFailure& other : before)
    failure.require(other.rank != next.rank || other.back_at_s <= next.at_s, "rank",
                    other.back_at_s == SimulatedFailure::never
                        ? "this rank fails twice; give back_at_s, when it comes back in between"
                        : "this rank fails again before it is back");
}

std::vector<SimulatedFailure> read_list(Config& simulate, int processes) {
  std::vector<SimulatedFailure> all;
  for (Config failure : simulate.sections(
           "failures", "who is silent from when on: rank, at_s since training began, back_at_s if it comes back")) {
    const auto rank = failure.integer("rank", 0, Range::between(0.0, processes - 1.0), "who fails");
    failure.require(failure.has("rank"), "rank", "say which rank fails");
    const double at_s = failure.real("at_s", 0.0, Range::at_least(0.0), "when, in seconds of training");
    const double back_at_s = failure.real("back_at_s", 0.0, Range::at_least(0.0),
                                          "when one of the spares (train.spares) is there to take its place; 0: never");
    const SimulatedFailure next{.rank = static_cast<int>(rank),
                                .at_s = at_s,
                                .back_at_s = back_at_s > 0.0 ? back_at_s : SimulatedFailure::never};
    require_order(failure, all, next);
    all.push_back(next);
  }
  std::ranges::stable_sort(all, {}, &SimulatedFailure::at_s);
  return all;
}

Storm read_storm(Config& simulate) {
  Config section = simulate.section("storm");
  Storm storm;
  storm.failures_per_hour = section.real("failures_per_hour", 0.0, Range::at_least(0.0),
                                         "of the job: at random instants, of ranks drawn from those who live; the last "
                                         "one is spared");
  const double back_after_s = section.real("back_after_s", 0.0, Range::at_least(0.0),
                                           "how long after a failure one of the spares (train.spares) is there to take "
                                           "the vertex, as long as there are any; 0: nobody comes back");
  if (back_after_s > 0.0) storm.back_after_s = back_after_s;
  storm.seed =
      static_cast<std::uint64_t>(section.integer("seed", 1, Range::at_least(0.0), "another one is another storm"));
  return storm;
}

struct Event {
  double at_s;
  int rank;
  bool back;
};

/// Whoever comes back in an instant is there before somebody fails in it.
std::vector<Event> events_of(const std::vector<SimulatedFailure>& failures) {
  std::vector<Event> all;
  for (const SimulatedFailure& failure : failures) {
    all.push_back({.at_s = failure.at_s, .rank = failure.rank, .back = false});
    if (failure.back_at_s < SimulatedFailure::never)
      all.push_back({.at_s = failure.back_at_s, .rank = failure.rank, .back = true});
  }
  std::ranges::stable_sort(
      all, [](const Event& a, const Event& b) { return a.at_s != b.at_s ? a.at_s < b.at_s : a.back && !b.back; });
  return all;
}

}  // namespace

std::vector<SimulatedFailure> drawn_failures(const Storm& storm, int ranks, int spares) {
  constexpr double hour_s = 3600.0;
  std::vector<SimulatedFailure> failures;
  std::vector<int> living(static_cast<std::size_t>(ranks));
  std::iota(living.begin(), living.end(), 0);
  std::deque<SimulatedFailure> away;
  Random random(stream_seed(storm.seed, "storm"));
  for (double at_s = 0.0; storm.failures_per_hour > 0.0 && (living.size() > 1 || !away.empty());) {
    at_s -= std::log1p(-random.uniform()) * hour_s / storm.failures_per_hour;
    for (; !away.empty() && away.front().back_at_s <= at_s; away.pop_front()) living.push_back(away.front().rank);
    if (living.size() == 1) continue;
    const auto victim = living.begin() + static_cast<std::ptrdiff_t>(random.below(living.size()));
    SimulatedFailure failure{.rank = *victim, .at_s = at_s};
    living.erase(victim);
    if (storm.back_after_s < SimulatedFailure::never && spares-- > 0) {
      failure.back_at_s = at_s + storm.back_after_s;
      away.push_back(failure);
    }
    failures.push_back(failure);
  }
  return failures;
}

SimulatedFailures::SimulatedFailures(Config& simulate, int processes)
    : listed_(read_list(simulate, processes)), storm_(read_storm(simulate)) {
  simulate.require(storm_.failures_per_hour == 0.0 || listed_.empty(), "storm", "give either failures or a storm");
}

void SimulatedFailures::settle(int processes, int spares) {
  ranks_ = processes - spares;
  const auto back = std::ranges::count_if(listed_, [](const auto& f) { return f.back_at_s < SimulatedFailure::never; });
  if (back > spares || (storm_.back_after_s < SimulatedFailure::never && spares == 0))
    throw ConfigError("simulate: a rank comes back as one of the spares: set train.spares: " +
                      std::to_string(std::max<std::ptrdiff_t>(back, 1)) +
                      " or more, and start as many processes more (-n)");
  for (const SimulatedFailure& failure : listed_)
    if (failure.rank >= ranks_)
      throw ConfigError("simulate.failures: rank " + std::to_string(failure.rank) +
                        " fails, and there are ranks 0 to " + std::to_string(ranks_ - 1));
  fails_.assign(static_cast<std::size_t>(processes), std::nullopt);
  returns_.clear();
  std::vector<int> holder(static_cast<std::size_t>(ranks_));  // of a vertex
  std::iota(holder.begin(), holder.end(), 0);
  int living = ranks_;
  for (const Event& event : events_of(listed_.empty() ? drawn_failures(storm_, ranks_, spares) : listed_)) {
    int& process = holder[static_cast<std::size_t>(event.rank)];
    living += event.back ? 1 : -1;
    if (living == 0) throw ConfigError("simulate.failures: one rank at least must live at any time");
    if (event.back) {
      process = ranks_ + static_cast<int>(returns_.size());
      returns_.push_back({.rank = event.rank, .at_s = event.at_s});
    } else {
      fails_[static_cast<std::size_t>(process)] = event.at_s;
    }
  }
}

std::optional<double> SimulatedFailures::fails_after_s(int process) const {
  const auto at = static_cast<std::size_t>(process);
  return at < fails_.size() ? fails_[at] : std::nullopt;
}

std::optional<SimulatedFailures::Return> SimulatedFailures::comes_back(int process) const {
  const auto spare = static_cast<std::size_t>(process - ranks_);
  if (process < ranks_ || spare >= returns_.size()) return std::nullopt;
  return returns_[spare];
}

int SimulatedFailures::rank_of(int process) const {
  const auto back = comes_back(process);
  return back ? back->rank : process;
}

}  // namespace hearsay
