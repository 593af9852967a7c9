#include "runtime/exchange/membership/pulse.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"

namespace hearsay {

Pulse::Pulse(RemoteMemory& memory, int rank, std::vector<std::size_t> offsets, std::chrono::nanoseconds timeout,
             Clock clock)
    : memory_(memory),
      rank_(rank),
      offsets_(std::move(offsets)),
      timeout_(timeout),
      clock_(std::move(clock)),
      peers_(offsets_.size()) {}

// Communication polls: the clock is looked at in some of its calls. Where many processes share a core each of them may
// take a tenth of a second.
void Pulse::progress() {
  constexpr std::uint64_t calls_a_look = 4;
  beat();
  if (calls_++ % calls_a_look != 0) return;
  if (resting_.load(std::memory_order_acquire)) return;
  const auto now = clock_();
  const bool was_away = now - std::exchange(here_, now) > timeout_ / 4;
  const std::uint64_t moves = moves_.load(std::memory_order_acquire);
  if (was_away || moves != std::exchange(seen_moves_, moves)) {
    moved_ = now;
    for (Peer& peer : peers_) peer.heard = now;
  }
  const auto between = timeout_ / looks_in_timeout;
  if (now - moved_ < 2 * between || now - looked_ < between) return;
  looked_ = now;
  look(now);
  require_all_moving(now);
}

void Pulse::beat() {
  auto* const word = memory_.own().data() + offsets_[static_cast<std::size_t>(rank_)];
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).store(++beats_, std::memory_order_release);
}

void Pulse::look(std::chrono::nanoseconds now) {
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r) {
    if (r == rank_) continue;
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    const auto beats = memory_.peek(r, offsets_[static_cast<std::size_t>(r)]);
    if (beats && *beats != std::exchange(peer.beats, *beats)) peer.heard = now;
  }
}

void Pulse::require_all_moving(std::chrono::nanoseconds now) const {
  std::string silent;
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r) {
    if (r == rank_ || now - peers_[static_cast<std::size_t>(r)].heard <= timeout_) continue;
    silent += (silent.empty() ? "rank " : ", rank ") + std::to_string(r);
  }
  if (silent.empty()) return;
  const bool one = silent.find(',') == std::string::npos;
  throw CommunicationError(silent + (one ? " has" : " have") +
                           " not moved for train.failure_timeout_s while others waited: stopped, hanging, or on a host "
                           "that is gone. The job ends; scripts/launch --restarts goes on from its newest checkpoint");
}

}  // namespace hearsay
