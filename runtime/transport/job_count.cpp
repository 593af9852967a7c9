#include "runtime/transport/job_count.hpp"

#include <algorithm>
#include <utility>

#include "runtime/transport/whole_word.hpp"

namespace hearsay {

JobCount::JobCount(RemoteMemory& memory, const Seats& seats, int process, std::size_t ring_bytes, Ledger& ledger)
    : memory_(memory),
      ledger_(ledger),
      seats_(seats),
      own_(static_cast<std::size_t>(process)),
      ring_bytes_(ring_bytes),
      vertex_(process),
      counts_(static_cast<std::size_t>(seats.processes()) * words_a_process) {
  if (seats_.is_spare(process)) return;
  for (const int neighbour : seats_.topology().neighbourhood(process).neighbours)
    neighbours_.push_back(neighbour_at(neighbour, neighbour));
}

/// Where the words of a slot begin in the memory of a process, behind its mailbox.
std::size_t JobCount::words_of(int process, std::size_t slot) const {
  const MailboxMap mailbox{.degree = static_cast<int>(seats_.slots(process)), .capacity_bytes = ring_bytes_};
  return mailbox.total_bytes() + bytes(slot, seats_.processes());
}

JobCount::Neighbour JobCount::neighbour_at(int vertex, int process) const {
  const Seats::Standing us{.process = static_cast<int>(own_), .vertex = vertex_};
  const Seats::Standing them{.process = process, .vertex = vertex};
  return {.vertex = vertex,
          .process = process,
          .there = words_of(process, seats_.slot(them, us)),
          .here = words_of(us.process, seats_.slot(us, them)),
          .words = std::vector<std::uint64_t>(counts_.size())};
}

void JobCount::stand_at(int vertex) {
  vertex_ = vertex;
  for (const int neighbour : seats_.topology().neighbourhood(vertex).neighbours) {
    neighbours_.push_back(neighbour_at(neighbour, neighbour));
    neighbours_.back().lost = true;
  }
}

void JobCount::attach(std::size_t edge, int process) {
  Neighbour& neighbour = neighbours_[edge];
  Neighbour other = neighbour_at(neighbour.vertex, process);
  other.anew = true;
  former_.push_back(std::exchange(neighbour, std::move(other)));
}

void JobCount::begin_batch() {
  counts_[own_].fetch_add(1, std::memory_order_relaxed);
  hurries_.store(false, std::memory_order_relaxed);
  due_.fetch_add(1, std::memory_order_release);
}

std::uint64_t JobCount::of(int process) const {
  return counts_[static_cast<std::size_t>(process)].load(std::memory_order_relaxed);
}

std::uint64_t JobCount::total() const {
  std::uint64_t sum = 0;
  for (std::size_t r = 0; r < processes(); ++r) sum += of(static_cast<int>(r));
  return sum;
}

std::uint64_t JobCount::stop() {
  auto& word = counts_[processes() + own_];
  const std::uint64_t stops = word.load(std::memory_order_relaxed) / 2 + 1;
  word.store(2 * stops, std::memory_order_relaxed);
  hurries_.store(true, std::memory_order_relaxed);
  due_.fetch_add(1, std::memory_order_release);
  return stops;
}

void JobCount::leave() {
  counts_[processes() + own_].fetch_or(1, std::memory_order_relaxed);
  due_.fetch_add(1, std::memory_order_release);
}

std::uint64_t JobCount::stop_word(int process) const {
  return counts_[processes() + static_cast<std::size_t>(process)].load(std::memory_order_acquire);
}
std::uint64_t JobCount::stops_of(int process) const { return stop_word(process) / 2; }
bool JobCount::has_left(int process) const { return stop_word(process) % 2 != 0; }

bool JobCount::has_told() const {
  return told_due_.load(std::memory_order_acquire) == due_.load(std::memory_order_acquire) &&
         told_heard_.load(std::memory_order_acquire) == heard_.load(std::memory_order_acquire);
}

void JobCount::state(Archive& archive) {
  std::vector<std::uint64_t> counts;
  for (int r = 0; r < seats_.count(); ++r) counts.push_back(of(r));
  archive.values("batches of the ranks", std::span(counts));
  for (std::size_t r = 0; archive.loads() && r < counts.size(); ++r)
    counts_[r].store(counts[r], std::memory_order_relaxed);
}

void JobCount::begin_at(std::uint64_t batches) {
  for (int r = 0; r < seats_.count(); ++r)
    counts_[static_cast<std::size_t>(r)].store(batches, std::memory_order_relaxed);
}

// One neighbour's words a call: communication polls, and counts are no hurry.
bool JobCount::progress() {
  if (neighbours_.empty()) return note_told(), false;
  learn(looked_at_++ % neighbours_.size());
  bool any = false;
  for (std::size_t edge = 0; edge < neighbours_.size(); ++edge) any = tell(edge) || any;
  note_told();
  return any;
}

void JobCount::note_told() {
  std::uint64_t due = due_.load(std::memory_order_acquire), heard = heard_.load(std::memory_order_relaxed);
  for (const Neighbour& to : neighbours_) {
    if (to.lost) continue;
    if (to.under_way) return;
    due = std::min(due, to.told);
    heard = std::min(heard, to.heard);
  }
  told_due_.store(due, std::memory_order_release);
  told_heard_.store(heard, std::memory_order_release);
}

void JobCount::drop(int process) {
  for (Neighbour& neighbour : neighbours_) neighbour.lost = neighbour.lost || neighbour.process == process;
}

void JobCount::learn(std::size_t edge) {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory_.own().data() + neighbours_[edge].here);
  bool any = false;
  for (std::size_t r = 0; r < counts_.size(); ++r) {
    if (r % processes() == own_) continue;
    const auto count = value_of_word(std::atomic_ref(words[r]).load(std::memory_order_relaxed));
    any = any || count;
    if (!count || *count <= counts_[r].load(std::memory_order_relaxed)) continue;
    heard_.fetch_add(1, std::memory_order_release);  // before whoever looks can see it (`has_told`)
    counts_[r].store(*count, std::memory_order_release);
  }
  if (any && !has_heard()) has_heard_.store(true, std::memory_order_release);
}

bool JobCount::tell(std::size_t edge) {
  Neighbour& to = neighbours_[edge];
  if (to.lost) return false;
  if (to.under_way) {
    to.under_way = !memory_.flush(to.process);
    return !to.under_way;
  }
  const std::uint64_t due = due_.load(std::memory_order_acquire);
  const std::uint64_t heard = heard_.load(std::memory_order_relaxed);
  const auto now = ledger_.now();
  const bool may_wait = !hurries_.load(std::memory_order_relaxed) && now - to.when < relay_after;
  if (!to.anew && to.told == due && (to.heard == heard || may_wait)) return false;
  to.anew = false;
  to.told = due;
  to.heard = heard;
  to.when = now;
  for (std::size_t r = 0; r < counts_.size(); ++r)
    to.words[r] = whole_word(static_cast<std::uint32_t>(counts_[r].load(std::memory_order_relaxed)));
  const auto bytes = std::as_bytes(std::span(to.words));
  memory_.put(bytes, to.process, to.there);
  ledger_.control_put(edge, bytes.size());
  to.under_way = true;
  return true;
}

}  // namespace hearsay
