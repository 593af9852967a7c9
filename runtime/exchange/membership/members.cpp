#include "runtime/exchange/membership/members.hpp"

#include <algorithm>
#include <utility>

namespace hearsay {

std::size_t DeathOptions::bytes(int processes, int spares) const {
  if (failure_timeout.count() > 0) return FailureDetector::bytes(processes, spares);
  return stall_timeout.count() > 0 ? Pulse::bytes : 0;
}

Members::Members(RemoteMemory& memory, const MemoryMap& map, const Seats& seats, int process, Mailbox& mailbox,
                 Ledger& ledger, const Clock& clock, const DeathOptions& options)
    : seats_(seats),
      process_(process),
      mailbox_(mailbox),
      count_(map.counts_batches ? std::make_unique<JobCount>(memory, seats, process, map.ring_bytes, ledger)
                                : nullptr) {
  if (options.failure_timeout.count() > 0) {
    failures_ = make_failure_detector(memory, map, ledger, options);
    if (!seats_.is_spare(process_)) attached_ = seats_.topology().neighbourhood(process_).neighbours;
  } else if (options.stall_timeout.count() > 0) {
    pulse_ = std::make_unique<Pulse>(memory, process_, rows(map), options.stall_timeout, clock);
  }
}

/// Where in each process's memory its mailbox and counts end.
std::vector<std::size_t> Members::rows(const MemoryMap& map) const {
  std::vector<std::size_t> rows;
  for (int p = 0; p < seats_.processes(); ++p) rows.push_back(map.behind_counts(seats_.neighbour_slots(p)));
  return rows;
}

std::unique_ptr<FailureDetector> Members::make_failure_detector(RemoteMemory& memory, const MemoryMap& map,
                                                                Ledger& ledger, const DeathOptions& options) const {
  std::vector<int> slots(static_cast<std::size_t>(seats_.processes()), -1);
  if (!seats_.is_spare(process_)) {
    const std::vector<int> neighbours = seats_.topology().neighbourhood(process_).neighbours;
    for (std::size_t e = 0; e < neighbours.size(); ++e)
      slots[static_cast<std::size_t>(neighbours[e])] = static_cast<int>(e);
  }
  return std::make_unique<FailureDetector>(memory, process_, rows(map), std::move(slots), options.failure_timeout,
                                           ledger, seats_.spares(), options.vacant);
}

double Members::job_iterations(Iteration k) const {
  return count_ ? static_cast<double>(count_->total()) / seats_.count() : static_cast<double>(k);
}

void Members::rest() {
  if (pulse_) pulse_->rest();
}

void Members::begin_iteration() {
  if (pulse_) pulse_->moved();
  if (count_) count_->begin_batch();
}

void Members::follow(Edges& edges, CommunicationEngine& engine) {
  if (!failures_) return;
  const int changes = failures_->changes();
  if (changes == std::exchange(followed_, changes)) return;
  const auto deaths = failures_->deaths();
  for (; lost_ < deaths.size(); ++lost_) edges.lose_process(deaths[lost_].process);
  const auto& neighbours = edges.neighbourhood().neighbours;
  for (std::size_t edge = 0; edge < neighbours.size(); ++edge) {
    const int holder = failures_->holder(neighbours[edge]);
    if (holder == edges.process_at(edge) || !failures_->alive(holder)) continue;
    if (!edges.lost(edge)) edges.lose(edge);  // its end is dead, which this rank has not heard yet
    begin_edge(edge, holder, edges, engine);
  }
}

void Members::begin_edge(std::size_t edge, int process, Edges& edges, CommunicationEngine& engine) {
  engine.run([&] {
    mailbox_.attach(edge, process);
    if (count_) count_->attach(edge, process);
    attached_[edge] = process;
    if (failures_->alive(process)) return;
    mailbox_.drop(edge);
    if (count_) count_->drop(process);
  });
  edges.begin(edge, process);
}

void Members::sit(int vertex, Edges& edges, CommunicationEngine& engine) {
  edges.sit(vertex);
  lost_ = failures_->deaths().size();
  const std::vector<int> neighbours = edges.neighbourhood().neighbours;
  engine.run([&] {
    mailbox_.stand_at(vertex);
    if (count_) count_->stand_at(vertex);
    attached_ = neighbours;
  });
  for (std::size_t edge = 0; edge < neighbours.size(); ++edge)
    if (const int holder = failures_->holder(neighbours[edge]); failures_->alive(holder))
      begin_edge(edge, holder, edges, engine);
}

bool Members::progress() {
  if (pulse_) pulse_->progress();
  bool any = failures_ && failures_->progress();
  if (failures_ && failures_->dead() != dropped_) drop_dead();
  any = (count_ && count_->progress()) || any;
  return any;
}

/// Nothing is sent to the dead any more, and nobody waits for them.
void Members::drop_dead() {
  const auto deaths = failures_->deaths();
  for (; dropped_ < static_cast<int>(deaths.size()); ++dropped_) {
    const int process = deaths[static_cast<std::size_t>(dropped_)].process;
    const auto at = std::ranges::find(attached_, process);
    if (at == attached_.end()) continue;
    mailbox_.drop(static_cast<std::size_t>(at - attached_.begin()));
    if (count_) count_->drop(process);
  }
}

}  // namespace hearsay
