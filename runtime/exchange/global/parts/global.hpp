#pragma once
// What every exchange of the global path does: run a collective where MPI may be called, and turn a sum into a mean.
#include <atomic>
#include <functional>
#include <optional>
#include <span>

#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/exchange/exchange.hpp"
#include "runtime/replica/finite.hpp"

namespace hearsay {

inline double epoch_of(const ExchangeContext& context, Iteration k) { return context.iterations_per_epoch.epoch(k); }

/// Runs `collective` on the communication thread and waits for it.
void run_collective(const ExchangeContext& context, const std::function<void()>& collective);

/// Collectives that run on the communication thread, in order, while the computing thread goes on.
class CollectiveQueue {
 public:
  explicit CollectiveQueue(const ExchangeContext& context) : context_(context) {}
  /// Waits for what is under way: jobs refer to the exchange that has submitted them.
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;
  /// `segments`: what it is about, for time lines.
  void submit(std::function<void()> collective, std::optional<SegmentRange> segments = std::nullopt);
  /// Waits for all of them; rethrows what one has thrown.
  void wait();

 private:
  const ExchangeContext& context_;
  std::size_t submitted_ = 0;
  std::atomic<std::size_t> done_{0};
  bool failed_ = false;  // a collective or the engine has: nothing is under way, and `done_` will not catch up
};

/// values ← values / P: a sum over all ranks of what begins at `offset` of the block. Throws DivergenceError, with the
/// segment's name, where the sum is too large for a float.
void divide_by_ranks(const ExchangeContext& context, std::size_t offset, std::span<float> values);

/// g ← total / P, where g lives: what begins at `offset` of the block. Throws as `divide_by_ranks`.
void set_to_mean(const ExchangeContext& context, std::size_t offset, std::span<float> g, const SparseVector& total);

/// Entries of a block with these segments that travel in the later iterations, and in any at most.
std::size_t usual_entries(const Sparsifier& sparsifier, const Layout& layout);
std::size_t most_entries(const Sparsifier& sparsifier, const Layout& layout);
/// Bytes of a message of the usual entries: what a budget of bits pays for, else the longest.
std::size_t usual_bytes(const Sparsifier& sparsifier, const Layout& layout);

/// Bytes of a list of the most entries, or of its message, whichever is longer.
std::size_t list_bytes(const Sparsifier& sparsifier, const Layout& layout);
/// What a selection of a whole block keeps from call to call, by `topk` or for news: others keep less.
std::size_t candidate_bytes(const Sparsifier& sparsifier, const Layout& layout);

/// An event for every segment in which something was selected; `positions` ascending, in the block.
void count_events(const ExchangeContext& context, std::span<const std::uint32_t> positions);

}  // namespace hearsay
