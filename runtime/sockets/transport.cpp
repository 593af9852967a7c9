#include "runtime/sockets/transport.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace hearsay::sockets {

Transport::Transport(std::shared_ptr<Network> network) : network_(std::move(network)), messages_(network_) {}

// The idle step of a participant is of use once it has memory.
RemoteMemory& Transport::open_memory(std::size_t bytes, const MemoryUse& use) {
  return window_.emplace(network_, bytes, use, [] {});
}

hearsay::Peers& Transport::open_peers(Hooks hooks) {
  idle_ = hooks.idle;
  return peers_.emplace(network_, std::move(hooks));
}

// Where puts are frames, each of their round trips waits for this process's next look; on one host nothing does but its
// own copies, which are seen a part of an iteration later.
std::unique_ptr<CommunicationEngine> Transport::make_engine(ProgressStep step) {
  using namespace std::chrono_literals;
  const Naps on_one_host{.shortest = 20us, .growth = 4, .longest = 8ms};
  return std::make_unique<ThreadEngine>(std::move(step), network_->on_one_host() ? on_one_host : Naps{});
}

void Transport::pass_time(double seconds, CommunicationEngine& engine) {
  engine.poll();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace hearsay::sockets
