#include "runtime/transport/job_count.hpp"

#include "runtime/transport/whole_word.hpp"

namespace hearsay {
namespace {

std::size_t behind_mailbox(std::size_t neighbours, std::size_t ring_bytes) {
  return MailboxMap{.degree = static_cast<int>(neighbours), .capacity_bytes = ring_bytes}.total_bytes();
}

}  // namespace

JobCount::JobCount(RemoteMemory& memory, const Topology& topology, int rank, std::size_t ring_bytes, Ledger& ledger)
    : memory_(memory),
      ledger_(ledger),
      own_rank_(static_cast<std::size_t>(rank)),
      first_(behind_mailbox(topology.neighbourhood(rank).neighbours.size(), ring_bytes)),
      counts_(static_cast<std::size_t>(topology.ranks())) {
  for (const int neighbour : topology.neighbourhood(rank).neighbours) {
    const auto degree = static_cast<std::size_t>(topology.degree(neighbour));
    const auto slot = static_cast<std::size_t>(topology.slot(neighbour, rank));
    neighbours_.push_back({.rank = neighbour,
                           .there = behind_mailbox(degree, ring_bytes) + bytes(slot, topology.ranks()),
                           .words = std::vector<std::uint64_t>(counts_.size())});
  }
}

void JobCount::begin_batch() {
  counts_[own_rank_].fetch_add(1, std::memory_order_relaxed);
  due_.fetch_add(1, std::memory_order_release);
}

std::uint64_t JobCount::of(int rank) const {
  return counts_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
}

std::uint64_t JobCount::total() const {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

void JobCount::state(Archive& archive) {
  std::vector<std::uint64_t> counts;
  for (const auto& count : counts_) counts.push_back(count.load(std::memory_order_relaxed));
  archive.values("batches of the ranks", std::span(counts));
  for (std::size_t r = 0; archive.loads() && r < counts.size(); ++r)
    counts_[r].store(counts[r], std::memory_order_relaxed);
}

void JobCount::begin_at(std::uint64_t batches) {
  for (auto& count : counts_) count.store(batches, std::memory_order_relaxed);
}

// One neighbour's words a call: communication polls, and counts are no hurry.
bool JobCount::progress() {
  if (neighbours_.empty()) return false;
  learn(looked_at_++ % neighbours_.size());
  bool any = false;
  for (std::size_t edge = 0; edge < neighbours_.size(); ++edge) any = tell(edge) || any;
  return any;
}

void JobCount::drop(int rank) {
  for (Neighbour& neighbour : neighbours_) neighbour.lost = neighbour.lost || neighbour.rank == rank;
}

void JobCount::learn(std::size_t edge) {
  auto* const words =
      reinterpret_cast<std::uint64_t*>(memory_.own().data() + first_ + bytes(edge, static_cast<int>(counts_.size())));
  for (std::size_t r = 0; r < counts_.size(); ++r) {
    if (r == own_rank_) continue;
    const auto count = value_of_word(std::atomic_ref(words[r]).load(std::memory_order_relaxed));
    if (!count || *count <= counts_[r].load(std::memory_order_relaxed)) continue;
    counts_[r].store(*count, std::memory_order_relaxed);
    ++heard_;
  }
}

bool JobCount::tell(std::size_t edge) {
  Neighbour& to = neighbours_[edge];
  if (to.lost) return false;
  if (to.under_way) {
    to.under_way = !memory_.flush(to.rank);
    return !to.under_way;
  }
  const std::uint64_t due = due_.load(std::memory_order_acquire);
  const auto now = ledger_.now();
  if (to.told == due && (to.heard == heard_ || now - to.when < relay_after)) return false;
  to.told = due;
  to.heard = heard_;
  to.when = now;
  for (std::size_t r = 0; r < counts_.size(); ++r)
    to.words[r] = whole_word(static_cast<std::uint32_t>(counts_[r].load(std::memory_order_relaxed)));
  const auto bytes = std::as_bytes(std::span(to.words));
  memory_.put(bytes, to.rank, to.there);
  ledger_.control_put(edge, bytes.size());
  to.under_way = true;
  return true;
}

}  // namespace hearsay
