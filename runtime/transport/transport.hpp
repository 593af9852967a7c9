#pragma once
// What carries the bytes of one rank to the others of its job: MPI, real or simulated (runtime/mpi/transport.hpp), or
// threads of one process in tests. A participant is written against this and does not know which it has.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "runtime/transport/engine.hpp"
#include "runtime/transport/peers.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay {

/// One rank's end. Making it, opening and the collective operations are done by all ranks, in the same order. All of it
/// throws CommunicationError.
class Transport {
 public:
  struct Hooks {
    /// Runs while an operation waits for other ranks.
    std::function<void()> idle = [] {};
    /// Told of every message of `Peers` that is handed over.
    std::function<void(int to, const Message& message)> sent = [](int, const Message&) {};
  };

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual Clock clock() const = 0;

  /// Makes `bytes` of this rank's memory, zero at first, that the others may write into. Once; collective.
  virtual RemoteMemory& open_memory(std::size_t bytes, const MemoryUse& use) = 0;
  /// Opens the way for messages between any two ranks. Once; collective.
  virtual Peers& open_peers(Hooks hooks) = 0;
  /// Who drives `step` from then on. After `open_memory`, before which nothing can move.
  virtual std::unique_ptr<CommunicationEngine> make_engine(ProgressStep step) = 0;

  /// Collective; run by the engine. The hook `idle` goes on meanwhile.
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  /// Returns when `seconds` have passed, in a simulation simulated ones; communication goes on meanwhile.
  virtual void pass_time(double seconds, CommunicationEngine& engine) = 0;
};

}  // namespace hearsay
