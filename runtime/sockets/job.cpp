#include "runtime/sockets/job.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <ranges>
#include <utility>

#include "runtime/sockets/communicator.hpp"
#include "runtime/sockets/record.hpp"
#include "runtime/sockets/transport.hpp"

namespace hearsay::sockets {

LastWord::LastWord(std::shared_ptr<Network> network) : Channel(std::move(network)) { open(); }

// Whoever closes its end while something comes may take back what it has said: so the others go first.
void LastWord::say(int exit_code) const {
  constexpr std::chrono::seconds longest{2};
  const auto until = std::chrono::steady_clock::now() + longest;
  network().go_on_without_the_dead();
  for (int rank = 0; rank < network().ranks(); ++rank)
    if (rank != network().rank())
      network().send(rank, frame(FrameKind::message, static_cast<std::uint64_t>(exit_code)));
  const auto is_gone = [&](int rank) { return rank == network().rank() || !network().is_here(rank); };
  const auto are_gone = [&] { return std::ranges::all_of(std::views::iota(0, network().ranks()), is_gone); };
  network().wait_until([&] { return are_gone() || std::chrono::steady_clock::now() > until; }, [] {});
}

// A signal comes to all who have started together, and needs no words there.
void LastWord::arrived(int from, const Frame& frame, RawBytes /*body*/, Descriptor /*file*/) {
  constexpr std::uint64_t first_signal_code = 128, last_code = 255;
  if (frame.kind != FrameKind::message || frame.bytes != 0 || frame.number > last_code)
    throw ConnectionLost("it ends the job in a way that nobody knows");
  const bool came_later = network().rank() >= network().founders();
  if (frame.number <= first_signal_code || came_later)
    std::fprintf(stderr, "hearsay: [rank %d] rank %d has ended the job; what it has printed says why\n",
                 network().rank(), from);
  std::fflush(nullptr);
  ::_exit(static_cast<int>(frame.number));
}

Job::Job(std::shared_ptr<Network> network) : network_(std::move(network)), notices_(network_), last_word_(network_) {}

Job::Job(Met met, std::unique_ptr<Rendezvous> rendezvous, const Latecomers::Options& late)
    : Job(std::move(met.network)) {
  late_ = std::make_unique<Latecomers>(network_, std::move(rendezvous), std::move(met.residence), late);
}

std::string Job::host() const { return own_host_name(); }

int Job::ranks_on_host() const {
  const std::vector<int> nodes = network_->nodes();
  return static_cast<int>(std::ranges::count(nodes, nodes[static_cast<std::size_t>(rank())]));
}

int Job::rank_on_host() const {
  const std::vector<int> nodes = network_->nodes();
  const auto own = nodes.begin() + rank();
  return static_cast<int>(std::count(nodes.begin(), own, *own));
}

std::unique_ptr<hearsay::Communicator> Job::communicator(std::function<void()> idle) const {
  return std::make_unique<sockets::Communicator>(network_, std::move(idle));
}

std::unique_ptr<hearsay::Transport> Job::transport() const { return std::make_unique<sockets::Transport>(network_); }

void Job::abort(int exit_code) const {
  std::fflush(nullptr);
  try {
    last_word_.say(exit_code);
  } catch (...) {  // it ends all the same
  }
  ::_exit(exit_code);
}

}  // namespace hearsay::sockets
