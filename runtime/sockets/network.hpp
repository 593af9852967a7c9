#pragma once
// The connections of one process to all other members of its job. Any thread, though those who wait take turns; nothing
// waits, but for what says so. Whoever is connected has proved that it is a member (greeting.hpp).
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sockets/connection.hpp"

namespace hearsay::sockets {

/// The host of a place that is free.
inline constexpr int nowhere = -1;

/// Another member, or this process.
struct Member {
  std::string host_name;
  int node = 0;              ///< its host; hosts are numbered from 0 in the order of their first ranks
  bool shares_host = false;  ///< with this process
  Descriptor socket{};       ///< to it; none for this process
  bool is_here = true;       ///< false: a place for one that may come later
};

class Channel;

class Network {
 public:
  using Idle = std::function<void()>;

  /// `members`: in the order of ranks. The first `founders` of them have started together; all, if it is left out.
  Network(int rank, std::vector<Member> members, std::optional<int> founders = {});
  /// Says goodbye and waits until all others do, a minute at most; where an exception is under way it says nothing, and
  /// the others take that for a death.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Keeps other threads out, for what channels know beside the network.
  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }
  int rank() const { return rank_; }
  /// Places included that are free.
  int ranks() const { return static_cast<int>(peers_.size()); }
  /// Those who have started together, who are the first ones.
  int founders() const { return founders_; }
  /// From now on there are so many places, the last of which are free; channels that are open do not reach them.
  /// Channels that are opened from now on have the same numbers on whoever comes later.
  void hold_places(int ranks);
  /// One comes later. False where its place is not free.
  bool admit(int rank, Member member);
  /// Whether somebody is at this place, as far as is known.
  bool is_here(int rank) const;
  bool shares_host(int rank) const;
  bool on_one_host() const;
  std::vector<int> nodes() const;

  /// Takes what has come and hands out what can go. True if anything has come.
  bool poll();
  /// Polls until `ready`, running `idle` meanwhile; other threads are kept out while `ready` looks. Throws
  /// CommunicationError where a member has died, unless the others go on.
  void wait_until(const std::function<bool()>& ready, const Idle& idle);
  /// From now on a death is not the end of the job.
  void go_on_without_the_dead() {
    const auto alone = lock();
    others_go_on_ = true;
  }
  /// Members that have said goodbye or are lost, in the order in which that was learnt.
  std::vector<int> gone() const {
    const auto alone = lock();
    return gone_;
  }
  /// Throw CommunicationError where some member, or this one, cannot send or receive any more, unless others go on.
  void require_all() const;
  void require(int rank) const;

  /// What is sent to one that is lost is dropped. `body` must stay until `has_sent`; the result is for that.
  std::uint64_t send(int to, const Frame& frame, std::span<const std::byte> body = {}, Descriptor file = {});
  bool has_sent(int to, std::uint64_t number) const;
  /// What was not sent is copied: its owner goes.
  void keep_unsent();

 private:
  friend class Channel;
  struct Peer;
  class Inbox;
  /// A frame for a channel that is not open here yet.
  struct Early {
    int from;
    Frame frame;
    RawBytes body;
    Descriptor file;
  };

  Peer& peer(int rank) const { return *peers_[static_cast<std::size_t>(rank)]; }
  std::uint32_t open(Channel& channel);
  void close(std::uint32_t channel);
  void deliver(int from, const Frame& frame, RawBytes body, Descriptor file);
  template <class Work>
  void work_on(int rank, const Work& work);
  void watch(int rank);
  void lose(int rank, const std::string& why);
  void drain(int rank);
  void pause(int looks) const;
  void part();

  mutable std::recursive_mutex mutex_;  // a frame may be answered while it is taken
  int rank_, founders_;
  std::vector<std::unique_ptr<Peer>> peers_;
  Descriptor events_;
  std::map<std::uint32_t, Channel*> channels_;
  std::uint32_t next_channel_ = 0;
  std::vector<Early> early_;
  bool others_go_on_ = false;
  std::optional<int> dead_{};  // the first
  std::vector<int> gone_;
};

/// One purpose that members have for the network: its frames are its own. Members open their channels in the same
/// order.
class Channel {
 public:
  explicit Channel(std::shared_ptr<Network> network);
  virtual ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// See Receiver.
  virtual std::optional<std::span<std::byte>> destination_of(int from, const Frame& frame);
  virtual void arrived(int from, const Frame& frame, RawBytes body, Descriptor file) = 0;
  /// One has come later; the network is locked.
  virtual void met(int rank) { static_cast<void>(rank); }

 protected:
  /// To be called at the end of the constructor of what derives from this: frames may be there already.
  void open();
  /// To be called first in the destructor of what derives from this: no frame comes any more.
  void shut();
  Network& network() const { return *network_; }
  Frame frame(FrameKind kind, std::uint64_t number = 0, std::uint64_t bytes = 0) const {
    return {.kind = kind, .channel = number_, .number = number, .bytes = bytes};
  }

 private:
  std::shared_ptr<Network> network_;
  std::uint32_t number_ = 0;
};

}  // namespace hearsay::sockets
