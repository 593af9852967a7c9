#include "runtime/transport/failure_detector.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/transport/whole_word.hpp"

namespace hearsay {
FailureDetector::FailureDetector(RemoteMemory& memory, int process, std::vector<std::size_t> offsets,
                                 std::vector<int> slots, std::chrono::nanoseconds timeout, Ledger& ledger, int spares,
                                 int vacant)
    : memory_(memory),
      ledger_(ledger),
      process_(process),
      offsets_(std::move(offsets)),
      slots_(std::move(slots)),
      timeout_(timeout),
      vertices_(static_cast<int>(offsets_.size()) - spares),
      peers_(offsets_.size()),
      row_(row_words(static_cast<int>(offsets_.size()), spares)),
      dead_(offsets_.size()),
      left_(offsets_.size()),
      roles_(offsets_.size()) {
  memory_.look_again_within(std::chrono::duration<double>(timeout_ / (2 * beats_in_timeout)).count());
  for (int vertex = vertices_ - vacant; vertex < vertices_; ++vertex) note_death({vertex, 0.0, false});
}

std::vector<FailureDetector::Death> FailureDetector::deaths() const {
  const std::lock_guard lock(mutex_);
  return deaths_;
}

std::vector<int> FailureDetector::living() const {
  std::vector<int> all;
  for (int r = 0; r < processes(); ++r)
    if (alive(r) && memory_.is_here(r)) all.push_back(r);
  return all;
}

std::vector<FailureDetector::Join> FailureDetector::joins() const {
  const std::lock_guard lock(mutex_);
  return joins_;
}

std::optional<int> FailureDetector::vertex_of(int process) const {
  if (!is_spare(process)) return process;
  const std::uint32_t vertex = role(process) & ~part_bit;
  return vertex == 0 ? std::nullopt : std::optional(static_cast<int>(vertex) - 1);
}

int FailureDetector::holder(int vertex) const {
  for (int r = processes() - 1; is_spare(r); --r)
    if (vertex_of(r) == vertex) return r;
  return vertex;
}

bool FailureDetector::takes_part(int process) const {
  return alive(process) && (!is_spare(process) || (role(process) & part_bit) != 0);
}

std::vector<int> FailureDetector::participants() const {
  std::vector<int> all;
  for (int r = 0; r < processes(); ++r)
    if (takes_part(r)) all.push_back(r);
  return all;
}

std::optional<int> FailureDetector::vertex_to_take(
    const std::function<std::vector<int>(int vertex)>& neighbours) const {
  for (int r = vertices_; r < process_; ++r)
    if (memory_.is_here(r) && alive(r) && !has_left(r) && !vertex_of(r)) return std::nullopt;
  for (int vertex = 0; vertex < vertices_; ++vertex) {
    if (alive(holder(vertex))) continue;
    const auto near = neighbours(vertex);
    if (std::ranges::any_of(
            near, [this](int neighbour) { return takes_part(holder(neighbour)) && is_here(holder(neighbour)); }))
      return vertex;
  }
  return std::nullopt;
}

void FailureDetector::take(int vertex) { note_role(process_, static_cast<std::uint32_t>(vertex) + 1); }
void FailureDetector::take_part() { note_role(process_, role(process_) | part_bit); }

void FailureDetector::note_role(int process, std::uint32_t role) {
  if (((role & ~this->role(process)) & part_bit) != 0) {
    const std::lock_guard lock(mutex_);
    joins_.push_back({.process = process,
                      .vertex = static_cast<int>(role & ~part_bit) - 1,
                      .at_s = std::chrono::duration<double>(ledger_.since_start()).count()});
  }
  roles_[static_cast<std::size_t>(process)].store(role, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_release);
}

bool FailureDetector::progress() {
  const auto now = ledger_.now();
  const auto interval = timeout_ / beats_in_timeout;
  bool any = finish_beat();
  if (bury_gone(now)) any = true;
  if (now - looked_ >= interval / 4) look(now), any = true;
  const bool news = told_ != dead() || told_role_ != role(process_) ||
                    (leaving_.load(std::memory_order_acquire) && !said_that_it_leaves_);
  if (now >= next_beat_ || news) beat(now), any = true;
  return any;
}

/// By the transport's own word. What a rank has said before it went is in its row, also that this one is dead.
bool FailureDetector::bury_gone(std::chrono::nanoseconds now) {
  const std::vector<int> gone = memory_.gone();
  const bool any = gone_ < gone.size();
  for (; gone_ < gone.size(); ++gone_) {
    const int process = gone[gone_];
    if (alive(process)) listen(process, now), believe(process, now);
    if (alive(process) && !has_left(process)) bury(process, now);
  }
  return any;
}

std::uint64_t FailureDetector::word(int row, std::size_t at) const {
  const std::size_t index = static_cast<std::size_t>(row) * row_.size() + at;
  auto* const words =
      reinterpret_cast<std::uint64_t*>(memory_.own().data() + offsets_[static_cast<std::size_t>(process_)]);
  return std::atomic_ref(words[index]).load(std::memory_order_acquire);
}

// First what has come, then who is missed: after a pause of this process's own all that has come meanwhile counts.
void FailureDetector::look(std::chrono::nanoseconds now) {
  const bool was_away = now - looked_ > timeout_ / 4;
  if (now - looked_ > timeout_ && looked_.count() > 0) stop_ = {.length = now - looked_, .end = now};
  looked_ = now;
  for (int r = 0; r < processes(); ++r) {
    if (r == process_) continue;
    if (alive(r))
      listen(r, now);
    else
      notice_life(r, now);
  }
  for (int r = 0; r < processes(); ++r)
    if (r != process_ && alive(r)) believe(r, now);
  for (int r = 0; r < processes(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (r == process_ || !alive(r) || has_left(r) || peer.beats == 0) continue;
    if (was_away) peer.heard = now;
    if (now - peer.heard <= timeout_) continue;
    if (stop_)
      throw TakenForDead("rank " + std::to_string(process_) + " was stopped for " +
                         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(stop_->length).count()) +
                         " s, longer than train.failure_timeout_s, and hears of nobody since: the others have gone on "
                         "or ended without it, and it ends");
    bury(r, now);
  }
}

void FailureDetector::listen(int process, std::chrono::nanoseconds now) {
  if (is_spare(process)) learn_role(process, now);
  const auto value = value_of_word(word(process, 0));
  Peer& peer = peers_[static_cast<std::size_t>(process)];
  const std::uint32_t beats = value.value_or(0) & ~left_bit;
  if (!value || beats <= peer.beats) return;
  peer.beats = beats;
  peer.heard = now;
  if (stop_ && now - stop_->end > timeout_ / 4) stop_.reset();
  if ((*value & left_bit) != 0) left_[static_cast<std::size_t>(process)].store(true, std::memory_order_release);
}

/// What a spare says of itself. Who takes a vertex says with it that the holder is dead, which comes first here, too:
/// both may have come while this process was away. Whoever knows of its vertex sends to it: so it must be open first.
void FailureDetector::learn_role(int spare, std::chrono::nanoseconds now) {
  if (!memory_.is_open(spare)) return;
  const std::uint32_t said = value_of_word(word(spare, row_.size() - 1)).value_or(0);
  const int vertex = static_cast<int>(said & ~part_bit) - 1;
  if ((said & ~role(spare)) == 0 || vertex >= vertices_) return;
  const int before = holder(vertex);
  if (before < spare && before != process_ && alive(before)) bury(before, now);
  note_role(spare, said);
}

/// A process is held for dead: what it had sent before comes soon; beats that come later are those of one that
/// was only stopped.
void FailureDetector::notice_life(int process, std::chrono::nanoseconds now) {
  Peer& peer = peers_[static_cast<std::size_t>(process)];
  const auto value = value_of_word(word(process, 0));
  const std::uint32_t beats = value.value_or(0) & ~left_bit;
  if (!value || beats <= peer.beats) return;
  peer.beats = beats;
  if (now - peer.heard > timeout_ / 4) peer.lives = true;
}

/// What a living process says of others.
void FailureDetector::believe(int process, std::chrono::nanoseconds now) {
  constexpr int bits = 32;
  for (std::size_t at = 1; at <= bit_words(processes()); ++at) {
    const std::uint32_t said = value_of_word(word(process, at)).value_or(0);
    for (int bit = 0; said != 0 && bit < bits; ++bit) {
      const int other = static_cast<int>(at - 1) * bits + bit;
      if ((said >> bit & 1U) == 0 || other >= processes()) continue;
      if (other == process_)
        throw TakenForDead("rank " + std::to_string(process_) +
                           " was not heard of for train.failure_timeout_s and was taken for dead by rank " +
                           std::to_string(process) + ": the others go on without it, and it ends");
      if (alive(other)) bury(other, now);
    }
  }
}

void FailureDetector::bury(int process, std::chrono::nanoseconds now) {
  peers_[static_cast<std::size_t>(process)].heard = now;
  note_death({.process = process, .at_s = std::chrono::duration<double>(ledger_.since_start()).count()});
}

void FailureDetector::note_death(const Death& death) {
  {
    const std::lock_guard lock(mutex_);
    deaths_.push_back(death);
  }
  dead_[static_cast<std::size_t>(death.process)].store(true, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_release);
}

/// Puts that are under way; a dead process's are not asked for any more, unless it lives: MPI may keep short ones back
/// until somebody asks.
bool FailureDetector::finish_beat() {
  bool any = false;
  for (int r = 0; r < processes(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (peer.lives && memory_.flush(r)) peer.lives = false;
    if (!peer.under_way || !alive(r)) continue;
    peer.under_way = !memory_.flush(r);
    if (!peer.under_way && std::exchange(peer.due, false)) tell(r);
    any = any || !peer.under_way;
  }
  return any;
}

/// Whoever has just been taken for dead is told so, should it be alive. Nobody waits for that to arrive; `finish_beat`
/// sees to it once there is a sign of life.
void FailureDetector::tell_dead() {
  for (const Death& death : deaths()) {
    Peer& peer = peers_[static_cast<std::size_t>(death.process)];
    if (!peer.farewell.empty()) continue;
    peer.farewell = row_;
    put_row(death.process, peer.farewell);
  }
}

void FailureDetector::put_row(int to, const std::vector<std::uint64_t>& row) {
  const auto bytes = std::as_bytes(std::span(row));
  const auto at = static_cast<std::size_t>(to);
  memory_.put(bytes, to, offsets_[at] + static_cast<std::size_t>(process_) * bytes.size());
  if (slots_[at] >= 0)
    ledger_.control_put(static_cast<std::size_t>(slots_[at]), bytes.size());
  else
    ledger_.control_put_elsewhere(bytes.size());
}

void FailureDetector::tell(int process) {
  Peer& peer = peers_[static_cast<std::size_t>(process)];
  peer.row = row_;
  put_row(process, peer.row);
  peer.under_way = true;
}

// Who has not answered the beat before may have died, and keeps nobody else from getting this one. It gets the newest
// once it has answered.
void FailureDetector::beat(std::chrono::nanoseconds now) {
  next_beat_ = now + timeout_ / beats_in_timeout;
  told_ = dead();
  told_role_ = role(process_);
  said_that_it_leaves_ = leaving_.load(std::memory_order_acquire);
  row_[0] = whole_word(++beats_ | (said_that_it_leaves_ ? left_bit : 0));
  for (std::size_t at = 1; at < row_.size(); ++at) row_[at] = whole_word(0);
  if (row_.size() > 1 + bit_words(processes())) row_.back() = whole_word(told_role_);
  for (const Death& death : deaths()) {
    const auto bit = static_cast<std::size_t>(death.process);
    row_[1 + bit / 32] = whole_word(static_cast<std::uint32_t>(row_[1 + bit / 32]) | std::uint32_t{1} << bit % 32);
  }
  tell_dead();
  for (int r = 0; r < processes(); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (r == process_ || !alive(r)) continue;
    if (peer.under_way)
      peer.due = true;
    else
      tell(r);
  }
}

}  // namespace hearsay
