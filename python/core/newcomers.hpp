#pragma once
// Processes that come to a job that trains (hearsay.join(job=…)), and from which call on they are in what the ranks do
// together.
//
//   a newcomer           takes a vertex with a neighbour's model (Spare::take_over), and trains with the others from
//                        then on; it waits to be let in
//   the first rank that  when it begins a step: lets it in, with what it must know of the calls and of the model
//   takes part
//   the newcomer         tells all that it is in the next call, and begins its loop at that rank's step
//
// A rank that is in a step will make its next call after it, and so will a loop that begins at that step. Between two
// steps a rank may be about to make a call that the newcomer's loop would not make any more.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/core/meetings.hpp"
#include "runtime/exchange/participant.hpp"
#include "runtime/transport/job.hpp"

namespace hearsay::python {

/// What a newcomer is told when it is let in.
struct Admission {
  Meetings::Progress calls{};
  Iteration steps = 0;      ///< that the rank has made which lets it in
  std::int64_t epochs = 0;  ///< of its data that were over there
};

/// Called by the thread of the loop, but for what says something else.
class Newcomers {
 public:
  /// Collective where others may come; else nobody ever does. All of it must outlive it.
  Newcomers(const Job& job, Participant& participant, Meetings& meetings, bool others_may_come);

  /// Whether a process that takes part in training is in the next call. Any thread; it only reads memory.
  bool counts(int process) const;

  // --- the first rank that takes part ---
  /// Who waits to be let in. Costs a comparison where nothing has happened.
  std::vector<int> waiting();
  /// Then, the same number of times as it receives something: `send`.
  void let_in(int newcomer, const Admission& admission);
  void send(int newcomer, std::span<std::byte> bytes);

  // --- a newcomer ---
  /// Returns when this process has a vertex and a model. Throws CommunicationError where the job ends before,
  /// WaitInterrupted.
  void take_vertex(const ExchangePlan& plan);
  /// Returns when this process is let in. Throws as `take_vertex`.
  Admission await_admission();
  /// Throws RankDied where the rank has died that lets this process in: then another one does.
  void receive(std::span<std::byte> bytes);
  /// It has received all: from now on it is in what the others do together.
  void enter(const Admission& admission);

 private:
  static constexpr std::size_t words_of_admission = 5;  // the last one says that the others are there

  std::uint64_t load(std::size_t at) const;
  std::size_t admission_by(int process) const;
  void tell(int to, std::size_t at, std::uint64_t word);
  void transfer(int with, int from, std::span<std::byte> bytes);
  bool is_lost(int process) const;
  bool others_have_gone() const;
  bool finds_vertex() const;
  bool pauses_until(const std::function<bool()>& ready, std::optional<double> seconds = {}) const;
  [[noreturn]] void leave(const std::string& words);

  Participant& participant_;
  Meetings& meetings_;
  const int founders_, own_;
  int looked_at_ = 0;  // of FailureDetector::changes
  int host_ = -1;      // who lets this process in
  std::function<void()> idle_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Transport> transport_;
  RemoteMemory* words_ = nullptr;
  std::deque<std::uint64_t> told_;  // must stay until it has arrived
};

}  // namespace hearsay::python
