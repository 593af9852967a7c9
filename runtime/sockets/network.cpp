#include "runtime/sockets/network.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace hearsay::sockets {

/// A member as this process sees it.
struct Network::Peer {
  explicit Peer(Member member)
      : host_name(std::move(member.host_name)),
        node(member.node),
        shares_host(member.shares_host),
        is_here(member.is_here) {
    if (member.socket) connection = std::make_unique<Connection>(std::move(member.socket), shares_host);
  }
  std::string host_name;
  int node;
  bool shares_host, is_here;
  std::unique_ptr<Connection> connection;  // null: itself, or lost
  bool said_goodbye = false;
  bool waits_to_send = false;  // and is to be told when it can
  int uses = 0;                // of the connection, one inside of the other
  bool is_lost = false;
  std::string why_lost;
};

/// Frames of one member.
class Network::Inbox final : public Receiver {
 public:
  Inbox(Network& network, int from) : network_(network), from_(from) {}
  std::optional<std::span<std::byte>> destination_of(const Frame& frame) override {
    const auto channel = network_.channels_.find(frame.channel);
    return channel == network_.channels_.end() ? std::nullopt : channel->second->destination_of(from_, frame);
  }
  void arrived(const Frame& frame, RawBytes body, Descriptor file) override {
    network_.deliver(from_, frame, std::move(body), std::move(file));
  }

 private:
  Network& network_;
  int from_;
};

Network::Network(int rank, std::vector<Member> members, std::optional<int> founders)
    : rank_(rank),
      founders_(founders.value_or(static_cast<int>(members.size()))),
      events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_) throw CommunicationError("epoll_create1 failed: " + std::generic_category().message(errno));
  for (Member& member : members) {
    peers_.push_back(std::make_unique<Peer>(std::move(member)));
    if (peers_.back()->connection) watch(static_cast<int>(peers_.size()) - 1);
  }
}

Network::~Network() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    part();
  } catch (...) {  // who leaves needs nobody any more
  }
}

/// A connection that is closed while something comes is torn down, and what was said on it may be lost: so nobody
/// closes before the other has said its last word.
void Network::part() {
  others_go_on_ = true;
  for (int r = 0; r < ranks(); ++r) send(r, {.kind = FrameKind::goodbye});
  const auto parted = [](const auto& peer) {
    return !peer->connection || (peer->said_goodbye && !peer->connection->has_unsent());
  };
  constexpr std::chrono::minutes longest{1};
  const auto end = std::chrono::steady_clock::now() + longest;
  wait_until([&] { return std::ranges::all_of(peers_, parted) || std::chrono::steady_clock::now() > end; }, [] {});
}

void Network::hold_places(int ranks) {
  constexpr std::uint32_t first_of_all = 1'000'000;
  const auto alone = lock();
  while (this->ranks() < ranks)
    peers_.push_back(std::make_unique<Peer>(Member{.host_name = "", .node = nowhere, .is_here = false}));
  next_channel_ = std::max(next_channel_, first_of_all);
}

bool Network::admit(int rank, Member member) {
  const auto alone = lock();
  if (rank < 0 || rank >= ranks() || peer(rank).is_here || peer(rank).is_lost) return false;
  peers_[static_cast<std::size_t>(rank)] = std::make_unique<Peer>(std::move(member));
  watch(rank);
  const auto channels = channels_;  // whom a frame ends closes none of them
  for (const auto& [number, channel] : channels) channel->met(rank);
  return true;
}

bool Network::is_here(int rank) const {
  const auto alone = lock();
  return peer(rank).is_here && !peer(rank).is_lost && !peer(rank).said_goodbye;
}

bool Network::shares_host(int rank) const {
  const auto alone = lock();
  return peer(rank).shares_host;
}

bool Network::on_one_host() const {
  const auto alone = lock();
  return std::ranges::all_of(peers_, [](const auto& peer) { return !peer->is_here || peer->shares_host; });
}

std::vector<int> Network::nodes() const {
  const auto alone = lock();
  std::vector<int> nodes;
  for (const auto& peer : peers_) nodes.push_back(peer->node);
  return nodes;
}

/// Runs `work` with the connection to `rank`; where that ends, the member is lost and no other. What comes may be
/// answered, so a use may lie inside of another one, which then ends, too.
template <class Work>
void Network::work_on(int rank, const Work& work) {
  Peer& with = peer(rank);
  if (!with.connection || with.is_lost) return;
  ++with.uses;
  try {
    work(*with.connection);
    if (with.connection->has_unsent() != with.waits_to_send) watch(rank);
    --with.uses;
  } catch (const ConnectionLost& lost) {
    if (--with.uses > 0) throw;
    lose(rank, lost.what());
  } catch (...) {
    --with.uses;
    throw;
  }
}

/// Tells the kernel what to wake this process for.
void Network::watch(int rank) {
  Peer& with = peer(rank);
  const bool is_new = with.connection->has_unsent() == with.waits_to_send;
  with.waits_to_send = with.connection->has_unsent();
  epoll_event event{};
  event.events = EPOLLIN | (with.waits_to_send ? std::uint32_t{EPOLLOUT} : 0U);
  event.data.fd = rank;
  if (::epoll_ctl(events_.number(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, with.connection->socket(), &event) != 0)
    throw CommunicationError("epoll_ctl failed: " + std::generic_category().message(errno));
}

void Network::lose(int rank, const std::string& why) {
  Peer& lost = peer(rank);
  lost.is_lost = true;
  drain(rank);
  lost.connection.reset();  // closes it, and the kernel watches it no more
  lost.why_lost = why;
  if (!lost.said_goodbye) gone_.push_back(rank);
  if (!dead_ && rank < founders_) dead_ = rank;  // who has come later is needed by nobody
}

/// What it had said before it could not be told anything any more.
void Network::drain(int rank) {
  Connection& connection = *peer(rank).connection;
  Inbox inbox(*this, rank);
  try {
    while (connection.is_open() && connection.pull(inbox)) {
    }
  } catch (const ConnectionLost&) {
  }
}

bool Network::poll() {
  const auto alone = lock();
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const int rank = events[static_cast<std::size_t>(i)].data.fd;
    work_on(rank, [&](Connection& connection) {
      Inbox inbox(*this, rank);
      any = connection.pull(inbox) || any;
      connection.push();
    });
  }
  return any;
}

void Network::wait_until(const std::function<bool()>& ready, const Idle& idle) {
  for (int looks = 0;; ++looks) {
    {
      const auto alone = lock();
      if (ready()) return;
      if (poll()) looks = 0;
      if (ready()) return;
      require_all();
    }
    idle();
    pause(looks);
  }
}

/// What comes over sockets ends the nap; what is put into this process's memory does not.
void Network::pause(int looks) const {
  constexpr int polls = 50;
  constexpr long nap_ns = 50'000;
  if (looks < polls) return std::this_thread::yield();
  pollfd events{.fd = events_.number(), .events = POLLIN, .revents = 0};
  const timespec nap{.tv_sec = 0, .tv_nsec = nap_ns};
  ::ppoll(&events, 1, &nap, nullptr);
}

void Network::require_all() const {
  const auto alone = lock();
  if (dead_) require(*dead_);
}

void Network::require(int rank) const {
  const auto alone = lock();
  const Peer& member = peer(rank);
  const bool is_connected = member.connection && !member.said_goodbye;
  if (others_go_on_ || rank == rank_ || !member.is_here || is_connected) return;
  const std::string who = "rank " + std::to_string(rank) + " on " + member.host_name;
  if (member.said_goodbye) throw CommunicationError(who + " has left the job, and this rank still needs it");
  throw CommunicationError(who + " is gone: its connection has ended (" + member.why_lost +
                           "). What it has printed says why; where it has printed nothing, it was killed");
}

std::uint64_t Network::send(int to, const Frame& frame, std::span<const std::byte> body, Descriptor file) {
  const auto alone = lock();
  std::uint64_t number = 0;
  work_on(to, [&](Connection& connection) { number = connection.send(frame, body, std::move(file)); });
  return number;
}

bool Network::has_sent(int to, std::uint64_t number) const {
  const auto alone = lock();
  const Peer& member = peer(to);
  return !member.connection || member.connection->sent() >= number;
}

void Network::keep_unsent() {
  const auto alone = lock();
  for (const auto& member : peers_)
    if (member->connection) member->connection->keep_unsent();
}

std::uint32_t Network::open(Channel& channel) {
  const std::uint32_t number = next_channel_++;
  channels_.emplace(number, &channel);
  return number;
}

void Network::close(std::uint32_t channel) {
  const auto alone = lock();
  channels_.erase(channel);
  for (const auto& member : peers_)
    if (member->connection) member->connection->forget(channel);
}

void Network::deliver(int from, const Frame& frame, RawBytes body, Descriptor file) {
  if (frame.kind == FrameKind::goodbye) {
    if (!std::exchange(peer(from).said_goodbye, true)) gone_.push_back(from);
    return;
  }
  const auto channel = channels_.find(frame.channel);
  if (channel != channels_.end()) return channel->second->arrived(from, frame, std::move(body), std::move(file));
  if (frame.channel < next_channel_) return;  // it is closed: nobody needs what is late
  if (frame.kind != FrameKind::message && frame.kind != FrameKind::window)
    throw ConnectionLost("it uses what was not opened");
  early_.push_back({.from = from, .frame = frame, .body = std::move(body), .file = std::move(file)});
}

Channel::Channel(std::shared_ptr<Network> network) : network_(std::move(network)) {}

Channel::~Channel() { shut(); }

void Channel::shut() { network_->close(number_); }

void Channel::open() {
  const auto alone = network_->lock();
  number_ = network_->open(*this);
  std::vector<Network::Early> all;
  all.swap(network_->early_);
  for (auto& early : all) {
    if (early.frame.channel != number_) {
      network_->early_.push_back(std::move(early));
      continue;
    }
    try {
      arrived(early.from, early.frame, std::move(early.body), std::move(early.file));
    } catch (const ConnectionLost& lost) {
      network_->lose(early.from, lost.what());
    }
  }
}

std::optional<std::span<std::byte>> Channel::destination_of(int /*from*/, const Frame& /*frame*/) {
  return std::nullopt;
}

}  // namespace hearsay::sockets
