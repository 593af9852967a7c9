#include "runtime/training/survivors.hpp"

#include <algorithm>

namespace hearsay {

void Survivors::require_all_alive() const {
  const FailureDetector* failures = participant_.failures();
  if (failures == nullptr || failures->dead() == known_.load()) return;
  const int rank = failures->deaths().back().rank;
  throw RankDied("rank " + std::to_string(rank) + " has died before training began; start the job again");
}

bool Survivors::attempt_together(const std::function<void()>& attempt) {
  FailureDetector& failures = *participant_.failures();
  for (;;) {
    const auto deaths = failures.deaths();
    std::vector<int> members;
    for (int r = 0; r < participant_.topology().ranks(); ++r)
      if (std::ranges::find(deaths, r, &FailureDetector::Death::rank) == deaths.end()) members.push_back(r);
    known_ = static_cast<int>(deaths.size());
    participant_.engine().run([&] { communicator_.keep(members); });
    try {
      attempt();
      return true;
    } catch (const RankDied&) {
      if (std::ranges::any_of(members, [&](int r) { return failures.has_left(r); })) return false;
    }
  }
}

void Survivors::leave() {
  constexpr double until_it_has_arrived_s = 0.3;
  participant_.failures()->leave();
  participant_.engine().wake();
  participant_.pass_time(until_it_has_arrived_s);
}

bool Survivors::reports() const {
  FailureDetector* failures = participant_.failures();
  return participant_.rank() == (failures == nullptr ? 0 : failures->living().front());
}

std::vector<LostRank> Survivors::lost(double seconds) const {
  std::vector<LostRank> all;
  FailureDetector* failures = participant_.failures();
  if (failures == nullptr) return all;
  const double now = std::chrono::duration<double>(participant_.ledger().since_start()).count();
  for (const FailureDetector::Death& death : failures->deaths())
    all.push_back({.rank = death.rank,
                   .at_s = std::max(0.0, seconds - (now - death.at_s)),
                   .iterations = static_cast<Iteration>(participant_.batches_of(death.rank))});
  return all;
}

int Survivors::parts() const {
  FailureDetector* failures = participant_.failures();
  if (failures == nullptr) return 1;
  std::vector<bool> seen(static_cast<std::size_t>(participant_.topology().ranks()));
  int parts = 0;
  for (const int first : failures->living()) {
    if (seen[static_cast<std::size_t>(first)]) continue;
    ++parts;
    seen[static_cast<std::size_t>(first)] = true;
    for (std::vector<int> open{first}; !open.empty();) {
      const int rank = open.back();
      open.pop_back();
      for (const int next : participant_.topology().neighbourhood(rank).neighbours) {
        if (!failures->alive(next) || seen[static_cast<std::size_t>(next)]) continue;
        seen[static_cast<std::size_t>(next)] = true;
        open.push_back(next);
      }
    }
  }
  return parts;
}

std::string Survivors::parts_text() const {
  const int in = parts();
  if (in <= 1) return {};
  return "without the ranks that died the graph is in " + std::to_string(in) +
         " parts, which have gone on each for itself";
}

}  // namespace hearsay
