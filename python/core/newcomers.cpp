#include "python/core/newcomers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

#include "base/error.hpp"
#include "runtime/failure/survivors.hpp"

namespace hearsay::python {

Newcomers::Newcomers(const Job& job, Participant& participant, Meetings& meetings, bool others_may_come)
    : participant_(participant), meetings_(meetings), founders_(job.ranks()), own_(job.rank()) {
  if (!others_may_come) return;
  communicator_ = job.communicator([this] { idle_(); });
  transport_ = job.transport();
  const auto processes = static_cast<std::size_t>(transport_->ranks());
  words_ = &transport_->open_memory(processes * (1 + words_of_admission) * sizeof(std::uint64_t),
                                    {.haste = Haste::nobody_waits});
}

/// First the number of the first call that each process is in, 0 where it is in none; then what each has told this one.
std::uint64_t Newcomers::load(std::size_t at) const {
  auto* const words = reinterpret_cast<std::uint64_t*>(words_->own().data());
  return std::atomic_ref(words[at]).load(std::memory_order_acquire);
}

std::size_t Newcomers::admission_by(int process) const {
  return static_cast<std::size_t>(transport_->ranks()) + words_of_admission * static_cast<std::size_t>(process);
}

bool Newcomers::is_lost(int process) const {
  const FailureDetector& failures = *participant_.members().failures();
  return !failures.alive(process) || failures.has_left(process);
}

/// Communicates, unless it tells this process itself.
void Newcomers::tell(int to, std::size_t at, std::uint64_t word) {
  if (to == own_) {
    auto* const words = reinterpret_cast<std::uint64_t*>(words_->own().data());
    return std::atomic_ref(words[at]).store(word, std::memory_order_release);
  }
  if (is_lost(to)) return;
  words_->store(told_.emplace_back(word), to, at * sizeof word);
  while (!words_->flush(to) && !is_lost(to)) {
    words_->sync();
    participant_.communication().progress();
  }
}

bool Newcomers::counts(int process) const {
  if (process < founders_) return true;
  const std::uint64_t first = words_ == nullptr ? 0 : load(static_cast<std::size_t>(process));
  return first != 0 && first <= meetings_.progress().calls + 1;
}

std::vector<int> Newcomers::waiting() {
  const FailureDetector* const failures = participant_.members().failures();
  if (words_ == nullptr || failures == nullptr) return {};
  const int changes = failures->changes();
  if (changes == looked_at_) return {};
  looked_at_ = changes;
  std::vector<int> all = failures->participants();
  const auto first = std::ranges::find_if(all, [this](int process) { return counts(process); });
  if (first == all.end() || *first != own_) return {};
  std::erase_if(all, [this](int process) { return counts(process); });
  return all;
}

// From now on this rank misses the newcomer in every call: without both of them there is none.
void Newcomers::let_in(int newcomer, const Admission& admission) {
  const std::array<std::uint64_t, words_of_admission> words{admission.calls.calls, admission.calls.meetings,
                                                            static_cast<std::uint64_t>(admission.steps),
                                                            static_cast<std::uint64_t>(admission.epochs), 1};
  participant_.communication().run([&] {
    tell(own_, static_cast<std::size_t>(newcomer), admission.calls.calls + 1);
    for (int process = founders_; process < transport_->ranks(); ++process)
      if (const std::uint64_t first = load(static_cast<std::size_t>(process)); first != 0)
        tell(newcomer, static_cast<std::size_t>(process), first);
    for (std::size_t i = 0; i < words.size(); ++i) tell(newcomer, admission_by(own_) + i, words[i]);
  });
}

void Newcomers::transfer(int with, int from, std::span<std::byte> bytes) {
  std::vector<int> both{std::min(own_, with), std::max(own_, with)};
  const int root = both.front() == from ? 0 : 1;
  idle_ = [this, with] {
    participant_.communication().serve();
    if (is_lost(with)) throw RankDied("the other one has died");
  };
  participant_.communication().run([&] {
    communicator_->keep(std::move(both));
    communicator_->broadcast(bytes, root);
  });
}

void Newcomers::send(int newcomer, std::span<std::byte> bytes) {
  try {
    if (!is_lost(newcomer)) transfer(newcomer, own_, bytes);
  } catch (const RankDied&) {  // nobody waits for it
  }
}

void Newcomers::receive(std::span<std::byte> bytes) { transfer(host_, host_, bytes); }

bool Newcomers::others_have_gone() const {
  const FailureDetector& failures = *participant_.members().failures();
  std::vector<int> others = failures.participants();
  std::erase_if(others, [&](int process) { return process == own_ || !counts(process); });
  return std::ranges::none_of(others, [&](int process) { return failures.is_here(process); }) ||
         std::ranges::any_of(others, [&](int process) { return failures.has_left(process); });
}

/// Whether `ready` came true before the time was over, or the others have gone.
bool Newcomers::pauses_until(const std::function<bool()>& ready, std::optional<double> seconds) const {
  constexpr double a_look_s = 0.005;
  Communication& communication = participant_.communication();
  for (double waited = 0.0; !ready(); waited += a_look_s) {
    if (others_have_gone() || (seconds && waited >= *seconds)) return false;
    communication.pass_time(a_look_s);
    communication.run([&] { communication.serve(); });
  }
  return true;
}

/// Nobody takes that for a death.
void Newcomers::leave(const std::string& words) {
  constexpr double until_it_has_arrived_s = 0.3;
  participant_.communication().run([this] { participant_.communication().serve(); });  // a signal, if that is why
  participant_.members().failures()->leave();
  participant_.communication().engine().wake();
  participant_.communication().pass_time(until_it_has_arrived_s);
  participant_.leave();
  throw CommunicationError(words);
}

bool Newcomers::finds_vertex() const {
  const Topology& graph = participant_.edges().topology();
  return participant_.members()
      .failures()
      ->vertex_to_take([&](int vertex) { return graph.neighbourhood(vertex).neighbours; })
      .has_value();
}

void Newcomers::take_vertex(const ExchangePlan& plan) {
  constexpr double patience_s = 2.0;  // a death is known by then, as a rule
  if (!pauses_until([this] { return finds_vertex(); }, patience_s) && !others_have_gone())
    std::fprintf(stderr, "hearsay: [rank %d] all vertices of the job are taken; this process waits until a rank dies\n",
                 own_);
  if (!participant_.spare()->take_over(plan))
    leave("the job has ended, and no vertex of it was free for this process before");
}

Admission Newcomers::await_admission() {
  std::size_t at = 0;
  const auto is_let_in = [&] {
    participant_.communication().run([this] { words_->sync(); });
    for (host_ = 0; host_ < transport_->ranks(); ++host_) {
      at = admission_by(host_);
      if (!is_lost(host_) && load(at + words_of_admission - 1) != 0) return true;
    }
    return false;
  };
  if (!pauses_until(is_let_in)) leave("the job has ended before this process took part in it");
  return {.calls = {.calls = load(at), .meetings = load(at + 1)},
          .steps = static_cast<Iteration>(load(at + 2)),
          .epochs = static_cast<std::int64_t>(load(at + 3))};
}

void Newcomers::enter(const Admission& admission) {
  participant_.communication().run([&] {
    meetings_.take_up(admission.calls);
    for (int process = 0; process < transport_->ranks(); ++process)
      tell(process, static_cast<std::size_t>(own_), admission.calls.calls + 1);
  });
}

}  // namespace hearsay::python
