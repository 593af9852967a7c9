#include "python/core/meetings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "runtime/transport/notices.hpp"

namespace hearsay::python {
namespace {

constexpr std::array<const char*, 12> names{"",
                                            "member.step()",
                                            "hearsay.join()",
                                            "member.evaluate()",
                                            "member.averaged()",
                                            "member.end()",
                                            "member.summary()",
                                            "member.state_dict()",
                                            "member.load_state_dict()",
                                            "member.leave()",
                                            "a decision of the Trainer",
                                            "the program's end"};

std::string whereabouts(const Presence& at, bool names_member) {
  if (at.call == Call::step) return "in step " + std::to_string(at.steps + 1);
  const bool at_end = at.call == Call::program_end;
  std::string text = (at_end ? "at " : "in ") + name_of(at.call);
  if (names_member) text += " of member " + std::to_string(at.member + 1);
  if (at.call == Call::join || (at_end && at.steps == 0)) return text;
  return text + " after " + std::to_string(at.steps) + " steps";
}

std::string remedy(Call here, Call there) {
  const bool in_step = here == Call::step || there == Call::step;
  const Call called = here == Call::step || here == Call::program_end ? there : here;
  if (in_step && is_last(called))
    return "make the same number of steps on every rank (member.share(loader) deals them evenly), or use "
           "exchange.schedule: asynchronous";
  if (!in_step && here != Call::program_end && there != Call::program_end)
    return "both are collective: call them on every rank, in the same order";
  return name_of(called) + " is collective: call it on every rank" +
         (in_step ? ", after the same number of steps" : "");
}

std::string sentence(const Presence& here, int rank, const Presence& there) {
  const bool several = here.member != there.member;
  return "rank " + std::to_string(rank) + " is " + whereabouts(there, several) + ", and this rank waits for it " +
         whereabouts(here, several) + "; " + remedy(here.call, there.call);
}

/// The ranks that have, or have not, posted a notice.
std::vector<int> ranks_that(Job& job, Notice notice, bool have) {
  std::vector<int> found;
  for (int rank = 0; rank < job.ranks(); ++rank)
    if (job.notices().has_posted(rank, notice) == have) found.push_back(rank);
  return found;
}

std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// One rank speaks: the lowest of those that are there. Where the launcher keeps no notices, all do.
void tell_who_is_missing(Job& job, double seconds) {
  const std::vector<int> here = ranks_that(job, Notice::joins, true), missing = ranks_that(job, Notice::joins, false);
  const int own = job.rank();
  if (!here.empty() && here.front() != own) return;
  std::fprintf(stderr,
               "hearsay: [rank %d] has waited %.0f seconds in hearsay.join() for %s; every rank has to call it\n", own,
               seconds, here.empty() ? "other ranks" : ("rank " + listed(missing)).c_str());
}

}  // namespace

void assemble(Job& job, const std::function<void()>& idle) {
  constexpr double look_every_s = 1.0, patience_s = 10.0;  // most ranks come at once, and ask nobody
  const auto start = std::chrono::steady_clock::now();
  double next_look = look_every_s / 2;
  bool posted = false, told = false;
  job.notices().await_all([&] {
    idle();
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (waited < next_look) return;
    next_look = waited + look_every_s;
    if (!std::exchange(posted, true)) job.notices().post(Notice::joins);
    if (const std::vector<int> gone = ranks_that(job, Notice::has_ended, true); !gone.empty())
      throw RankLeft("rank " + listed(gone) + " is at the program's end, and this rank waits for it in " +
                     name_of(Call::join) + ", which is collective: call it on every rank");
    if (waited > patience_s && !std::exchange(told, true)) tell_who_is_missing(job, waited);
  });
  if (posted) job.notices().withdraw(Notice::joins);
}

void tell_of_end(Job& job) { job.notices().post(Notice::has_ended); }

Call call_named(std::string_view name) {
  for (std::size_t call = 1; call < names.size(); ++call)
    if (name == names[call]) return static_cast<Call>(call);
  throw std::logic_error("no call of a member is named " + std::string(name));
}

bool is_last(Call call) {
  return call == Call::end || call == Call::summary || call == Call::leave || call == Call::program_end;
}

std::string name_of(Call call) { return names[static_cast<std::size_t>(call)]; }

/// 8 bits of call, 8 of member, 16 of meeting and 32 of steps: two ranks are never more than a meeting apart.
struct Meetings::Word {
  Presence at;
  std::uint16_t meeting = 0;  ///< its number, from 1

  std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint8_t>(at.call)} << 56 |
           std::uint64_t{static_cast<std::uint8_t>(at.member)} << 48 | std::uint64_t{meeting} << 32 |
           static_cast<std::uint32_t>(at.steps);
  }
  static Word unpacked(std::uint64_t bits) {
    return {{static_cast<Call>(bits >> 56), static_cast<int>(bits >> 48 & 0xff),
             static_cast<std::int64_t>(bits & 0xffffffff)},
            static_cast<std::uint16_t>(bits >> 32)};
  }
};

/// How many calls a rank has agreed on, and its meetings until then: 32 bits each.
struct Meetings::Agreement {
  std::uint64_t calls, meetings;

  std::uint64_t packed() const { return calls << 32 | (meetings & 0xffffffff); }
  static Agreement unpacked(std::uint64_t bits) { return {.calls = bits >> 32, .meetings = bits & 0xffffffff}; }
};

Meetings::Meetings(const Job& job)
    : communicator_(job.communicator([this] { idle_(); })),
      transport_(job.transport()),
      words_(transport_->open_memory(
          2 * static_cast<std::size_t>(transport_->ranks()) * sizeof(std::uint64_t),
          // Deaths are the business of the members' windows; here a flush waits for nobody who may be dead.
          {.haste = job.outlives_a_rank() ? Haste::nobody_waits : Haste::somebody_waits})),
      everybody_(static_cast<std::size_t>(transport_->ranks())),
      ranks_(static_cast<std::size_t>(job.ranks())),
      told_(everybody_.size()),
      own_(static_cast<std::size_t>(job.rank())) {
  std::iota(everybody_.begin(), everybody_.end(), 0);
  std::iota(ranks_.begin(), ranks_.end(), 0);
}

std::uint64_t Meetings::load(std::size_t at) const {
  auto* const words = reinterpret_cast<std::uint64_t*>(words_.own().data());
  return std::atomic_ref(words[at]).load(std::memory_order_acquire);
}

Meetings::Word Meetings::word_of(int rank) const { return Word::unpacked(load(static_cast<std::size_t>(rank))); }

void Meetings::keep(std::vector<int> ranks, std::uint64_t attempt) {
  // The call counts: whoever has given it up may have left a message that nobody has taken.
  constexpr std::uint64_t apart = 0x9e3779b97f4a7c15ULL;
  communicator_->keep(ranks, attempt + apart * (agreed_ + 1));
  ranks_ = std::move(ranks);
  if (!std::exchange(begun_, true)) met_before_ = met_;
  met_ = met_before_;
}

/// The own word is the last one: from then on this rank looks.
void Meetings::tell(std::uint64_t word, std::size_t at, const std::vector<int>& ranks, const Waiting& waiting) {
  for (const int target : ranks) {
    if (target == static_cast<int>(own_) || waiting.is_dead(target)) continue;
    std::uint64_t& kept = told_[static_cast<std::size_t>(target)] = word;
    words_.store(kept, target, at * sizeof word);
    while (!words_.flush(target) && !waiting.is_dead(target)) {
      words_.sync();
      waiting.idle();
    }
  }
  std::atomic_ref(reinterpret_cast<std::uint64_t*>(words_.own().data())[at]).store(word, std::memory_order_release);
}

void Meetings::come(Presence here, const Waiting& waiting) {
  tell(Word{here, static_cast<std::uint16_t>(met_ + 1)}.packed(), own_, ranks_, waiting);
}

void Meetings::take_up(const Progress& progress) {
  agreed_ = progress.calls;
  met_ = progress.meetings;
  begun_ = false;
}

// All words are written before the barrier lets anybody go on, so those that have met elsewhere are seen by all.
void Meetings::meet(std::function<void()> idle) {
  idle_ = [this, idle = std::move(idle)] {
    words_.sync();
    idle();
  };
  communicator_->barrier();
  words_.sync();
  if (const auto why = contradiction()) throw RankLeft(*why);
  ++met_;
}

void Meetings::agree(const Waiting& waiting, std::function<void()> idle) {
  idle_ = std::move(idle);
  communicator_->barrier();
  agree_after_others(waiting);
}

/// The meetings of the call are as many as others have counted: this rank may have begun it again. Who has just come
/// later hears of it, too: it may have been to take part.
void Meetings::agree_after_others(const Waiting& waiting) {
  met_ = newest_agreement().meetings;
  ++agreed_;
  begun_ = false;
  tell(Agreement{agreed_, met_}.packed(), told_.size() + own_, everybody_, waiting);
}

Meetings::Agreement Meetings::newest_agreement() const {
  Agreement newest{agreed_, met_};
  for (const int rank : ranks_) {
    const auto of = Agreement::unpacked(load(told_.size() + static_cast<std::size_t>(rank)));
    if (of.calls > newest.calls) newest = of;
  }
  return newest;
}

bool Meetings::others_have_agreed() const { return newest_agreement().calls > agreed_; }

std::string Meetings::missing() const {
  const std::uint16_t meeting = word_of(static_cast<int>(own_)).meeting;
  std::string ranks;
  for (const int rank : ranks_)
    if (static_cast<std::int16_t>(word_of(rank).meeting - meeting) < 0)
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

std::optional<std::string> Meetings::contradiction(const std::optional<Presence>& step) const {
  const Word own = word_of(static_cast<int>(own_));
  const Presence here = step.value_or(own.at);
  const auto meeting = static_cast<std::uint16_t>(step ? own.meeting + 1 : own.meeting);
  const auto cannot_come = [&](const Presence& there) {
    const bool same_member = there.member == here.member;
    return step ? there.call != Call::step && same_member && there.steps <= here.steps
                : there.call != here.call || !same_member;
  };
  for (const int rank : ranks_) {
    const Word there = word_of(rank);
    if (rank != static_cast<int>(own_) && there.at.call != Call::none && there.meeting == meeting &&
        cannot_come(there.at))
      return sentence(here, rank, there.at);
  }
  return std::nullopt;
}

}  // namespace hearsay::python
