#pragma once
// One RMA window per rank, open for puts from everybody during its whole lifetime.
#include <limits>
#include <memory>
#include <optional>

#include "runtime/mpi/communicator_handle.hpp"
#include "runtime/transport/remote_memory.hpp"

namespace hearsay::mpi {

/// MPI_Win_allocate (on one node 10–30 times faster per put than MPI_Win_create, and it does not hang when a peer has
/// died) inside one passive-target epoch (MPI_Win_lock_all). Collective to make and to destroy.
class Window final : public RemoteMemory {
 public:
  /// The ranks of a communicator; `bytes` may differ between them. Throws CommunicationError, naming launch options
  /// that work, if this choice of MPI components cannot make windows or has no unified memory model.
  explicit Window(std::size_t bytes, CommunicatorHandle of = all_ranks(), const MemoryUse& use = {});
  ~Window() override;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::span<std::byte> own() override;
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override;
  void store(const std::uint64_t& word, int target, std::size_t offset) override;
  bool flush(int target) override;
  void sync() override;
  /// Not in a simulation.
  std::optional<std::uint64_t> peek(int target, std::size_t offset) override;
  int patience() const override;
  /// Whether what others put here arrives while this rank does nothing: plain memory of one host, or a simulation.
  bool fills_by_itself() const;
  void look_again_within(double seconds) override;
  /// Waits, at most `seconds`, until something may have changed here: in a simulation until a put has arrived or one of
  /// this rank's own is complete, else for a moment. Any thread.
  void wait(double seconds = std::numeric_limits<double>::infinity());

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace hearsay::mpi
