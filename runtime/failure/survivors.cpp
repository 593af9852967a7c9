#include "runtime/failure/survivors.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/hash.hpp"

namespace hearsay {
namespace {

/// Who takes part and who is dead, as a number. The living learn both of each other.
std::uint64_t attempt_among(std::vector<int> members, const FailureDetector& failures) {
  std::vector<int> dead;
  for (const FailureDetector::Death& death : failures.deaths()) dead.push_back(death.process);
  std::ranges::sort(dead);
  members.push_back(-1);
  members.insert(members.end(), dead.begin(), dead.end());
  return xxh3(std::as_bytes(std::span(members)));
}

}  // namespace

/// Those who take part and count.
std::vector<int> Survivors::participants() const {
  std::vector<int> all = participant_.members().failures()->participants();
  std::erase_if(all, [this](int process) { return !counts_(process); });
  return all;
}

/// How often somebody has died, or has begun to take part or to count.
int Survivors::changes() const {
  const FailureDetector& failures = *participant_.members().failures();
  const int before = failures.changes();
  const auto joins = failures.joins();
  return before + static_cast<int>(std::ranges::count_if(joins, [this](const auto& j) { return counts_(j.process); }));
}

void Survivors::require_all_alive() const {
  const FailureDetector* failures = participant_.members().failures();
  if (failures == nullptr) return;
  if (somebody_has_left()) throw RankDied("the others have done this without this rank");
  const int changes = this->changes();
  if (changes == known_) return;
  if (!begun_) return require_founders();
  if (attempt_among(participants(), *failures) != attempt_) throw RankDied("a rank has died, or one more takes part");
  known_ = changes;
}

void Survivors::require_founders() const {
  const auto deaths = participant_.members().failures()->deaths();
  for (std::size_t i = forgotten_; i < deaths.size(); ++i)
    if (deaths[i].was_there && deaths[i].process < founders_)
      throw RankDied("rank " + std::to_string(deaths[i].process) +
                     " has died before training began; start the job again");
}

/// One of the members, so long ago that what it has sent before must have come: it has done this with other members.
bool Survivors::somebody_has_left() const {
  constexpr std::chrono::seconds until_all_has_come{2};
  const FailureDetector& failures = *participant_.members().failures();
  if (std::ranges::none_of(members_, [&](int member) { return failures.has_left(member); })) return false;
  const auto now = participant_.ledger().now();
  if (!left_at_) left_at_ = now;
  return now - *left_at_ > until_all_has_come;
}

void Survivors::forget_the_dead() {
  if (!may_die()) return;
  const FailureDetector& failures = *participant_.members().failures();
  known_ = changes();
  forgotten_ = failures.deaths().size();
  attempt_ = attempt_among(participants(), failures);
}

Survivors::Attempt Survivors::begin_attempt() {
  const FailureDetector& failures = *participant_.members().failures();
  const int changes = this->changes();
  const std::vector<int> members = participants();
  const std::uint64_t number = attempt_among(members, failures);
  participant_.communication().run([&] {
    communicator_.keep(members, number);
    members_ = members;
    left_at_.reset();
    known_ = changes;
    attempt_ = number;
    begun_ = true;
  });
  return {.members = members, .number = number};
}

bool Survivors::attempt_together(const std::function<void()>& attempt) {
  const FailureDetector& failures = *participant_.members().failures();
  for (;;) {
    const std::vector<int> members = begin_attempt().members;
    try {
      attempt();
      return true;
    } catch (const RankDied&) {
      if (std::ranges::any_of(members, [&](int r) { return failures.has_left(r); })) return false;
    }
  }
}

void Survivors::among(const std::function<bool(int process)>& takes_part, const std::function<void()>& work) {
  if (members_.empty()) return work();
  std::vector<int> some;
  std::ranges::copy_if(members_, std::back_inserter(some), takes_part);
  if (some == members_) return work();
  if (std::ranges::find(some, participant_.members().process()) == some.end()) return;
  participant_.communication().run([&] { communicator_.keep(some, attempt_); });
  work();
  participant_.communication().run([&] { communicator_.keep(members_, attempt_); });
}

void Survivors::leave() {
  constexpr double until_it_has_arrived_s = 0.3;
  participant_.members().failures()->leave();
  participant_.communication().engine().wake();
  participant_.communication().pass_time(until_it_has_arrived_s);
}

bool Survivors::reports() const {
  FailureDetector* failures = participant_.members().failures();
  if (failures == nullptr) return participant_.members().process() == 0;
  const std::vector<int> all = participants();
  return !all.empty() && participant_.members().process() == all.front();
}

double Survivors::began_s(double seconds) const {
  return std::chrono::duration<double>(participant_.ledger().since_start()).count() - seconds;
}

std::vector<LostRank> Survivors::lost(double began_s) const {
  std::vector<LostRank> all;
  FailureDetector* failures = participant_.members().failures();
  if (failures == nullptr) return all;
  for (const FailureDetector::Death& death : failures->deaths()) {
    if (!death.was_there) continue;
    all.push_back({.rank = failures->vertex_of(death.process),
                   .process = death.process,
                   .at_s = std::max(0.0, death.at_s - began_s),
                   .iterations = static_cast<Iteration>(participant_.members().batches_of(death.process))});
  }
  return all;
}

std::vector<JoinedRank> Survivors::joined(double began_s) const {
  std::vector<JoinedRank> all;
  FailureDetector* failures = participant_.members().failures();
  if (failures == nullptr) return all;
  for (const FailureDetector::Join& join : failures->joins()) {
    if (!counts_(join.process)) continue;
    all.push_back({.rank = join.vertex,
                   .process = join.process,
                   .at_s = std::max(0.0, join.at_s - began_s),
                   .iterations = static_cast<Iteration>(participant_.members().batches_of(join.process))});
  }
  return all;
}

std::vector<int> Survivors::missing() const {
  std::vector<int> all;
  FailureDetector* failures = participant_.members().failures();
  for (int vertex = 0; failures != nullptr && vertex < participant_.edges().topology().ranks(); ++vertex)
    if (!failures->takes_part(failures->holder(vertex))) all.push_back(vertex);
  return all;
}

bool Survivors::left_waiting() const {
  const FailureDetector& failures = *participant_.members().failures();
  const auto living = failures.living(), empty = missing();
  const auto takes_part = [&](int vertex) { return failures.takes_part(failures.holder(vertex)); };
  const auto is_alone = [&](int vertex) {
    return std::ranges::none_of(participant_.edges().topology().neighbourhood(vertex).neighbours, takes_part);
  };
  return std::ranges::any_of(empty, is_alone) &&
         std::ranges::any_of(living, [&](int process) { return !failures.takes_part(process); });
}

int Survivors::parts() const {
  FailureDetector* failures = participant_.members().failures();
  if (failures == nullptr) return 1;
  std::vector<bool> seen(static_cast<std::size_t>(participant_.edges().topology().ranks()));
  for (const int vertex : missing()) seen[static_cast<std::size_t>(vertex)] = true;
  int parts = 0;
  for (int first = 0; first < participant_.edges().topology().ranks(); ++first) {
    if (seen[static_cast<std::size_t>(first)]) continue;
    ++parts;
    seen[static_cast<std::size_t>(first)] = true;
    for (std::vector<int> open{first}; !open.empty();) {
      const int rank = open.back();
      open.pop_back();
      for (const int next : participant_.edges().topology().neighbourhood(rank).neighbours) {
        if (seen[static_cast<std::size_t>(next)]) continue;
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
