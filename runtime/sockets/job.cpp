#include "runtime/sockets/job.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/sockets/communicator.hpp"
#include "runtime/sockets/record.hpp"
#include "runtime/sockets/transport.hpp"

namespace hearsay::sockets {

Job::Job(std::shared_ptr<Network> network) : network_(std::move(network)), notices_(network_) {}

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
  ::_exit(exit_code);
}

}  // namespace hearsay::sockets
