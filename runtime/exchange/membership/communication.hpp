#pragma once
// A rank's end of communication, in the order in which one part needs another: the transport, what is counted of it,
// messages, memory and mailbox, what is known of the other processes, and the engine that drives all of it.
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "runtime/exchange/membership/edges.hpp"
#include "runtime/exchange/membership/members.hpp"
#include "runtime/replica/device.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"
#include "runtime/transport/peers.hpp"
#include "runtime/transport/transport.hpp"

namespace hearsay {

class Communication {
 public:
  struct Options {
    MemoryMap map{};
    std::size_t segments = 0;  ///< that the ledger counts by
    Mailbox::Tails tails = Mailbox::Tails::may_wait;
    Haste haste = Haste::nobody_waits;
    Device* reads_mailbox = nullptr;  ///< a device that takes packets from where they lie; null: the processor copies
    DeathOptions deaths{};
    /// When the others' clocks started, where this rank comes later.
    std::optional<std::chrono::system_clock::time_point> others_began{};
    /// Ends waiting (a stop signal has come); must be cheap and safe to call from any thread.
    std::function<bool()> interrupted = [] { return false; };
  };

  /// Collective. `edges` must outlive it. Throws CommunicationError.
  Communication(std::unique_ptr<Transport> transport, const Edges& edges, Options options);
  Communication(const Communication&) = delete;
  Communication& operator=(const Communication&) = delete;

  /// Runs what calls MPI where MPI may be called.
  CommunicationEngine& engine() { return *engine_; }
  void run(const std::function<void()>& job) { engine_->run(job); }
  Ledger& ledger() { return ledger_; }
  Mailbox& mailbox() { return mailbox_; }
  /// Messages of collectives, over all ranks; to be used inside jobs of `engine` only.
  Peers& peers() { return peers_; }
  Members& members() { return members_; }

  /// What communication does while it waits for other ranks elsewhere: moves on. Throws WaitInterrupted.
  void serve();
  /// Moves on, whatever has come. True if anything moved.
  bool progress();
  /// Lets `seconds` pass while communication goes on; in a simulation simulated ones.
  void pass_time(double seconds) { transport_->pass_time(seconds, *engine_); }
  /// Lets pass what `seconds` of computing take beside the jobs that were submitted before them (InlineEngine).
  void compute_for(double seconds);
  /// Waits until everything posted has been sent; what was for a dead neighbour counts as sent.
  void flush();

  /// Inside a job of `engine`: all ranks meet.
  void barrier() { transport_->barrier(); }
  /// All ranks have rank `root`'s bytes. Collective.
  void broadcast(std::span<std::byte> bytes, int root);
  /// Runs a collective that is no training, and is not booked as such, like evaluations.
  void uncounted(const std::function<void()>& job);
  /// Ends communication; what is counted stays.
  void leave();

 private:
  Transport::Hooks hooks();
  void require_root();

  std::unique_ptr<Transport> transport_;
  const Edges& edges_;
  const Options options_;
  const Seats seats_;
  Ledger ledger_;
  bool counts_messages_ = true;      // the communication thread's, as the next
  std::optional<int> broadcasts_{};  // the root of a broadcast that goes on
  bool root_is_dead_ = false;        // and has been so at a look before
  Peers& peers_;
  RemoteMemory* memory_;
  std::shared_ptr<void> memory_pin_;  // null: no device reads it by itself
  Mailbox mailbox_;
  Members members_;
  std::unique_ptr<CommunicationEngine> engine_;  // joins its thread before anything above goes
};

}  // namespace hearsay
