#pragma once
// What every exchange of the global path does: run a collective where MPI may be called, and turn a sum into a mean.
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/algorithms/exchange.hpp"
#include "runtime/base/error.hpp"
#include "runtime/collectives/sparse_vector.hpp"

namespace hearsay {

inline double epoch_of(const ExchangeContext& context, Iteration k) {
  return static_cast<double>(k) / static_cast<double>(context.iterations_per_epoch);
}

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

/// g ← total / P, where g lives.
void set_to_mean(Device& device, std::span<float> g, const SparseVector& total, int ranks);

/// Throws `error` with the name of the segment that holds the first of `values` which is not finite; `values` begin at
/// `offset` of the block and are called `what`: "gradient", say.
[[noreturn]] void name_segment(const Layout& layout, std::size_t offset, std::span<const float> values,
                               std::string_view what, const DivergenceError& error);

/// Throws DivergenceError, naming the segment, unless all gradients are finite; `values` begin at `offset` of the block.
/// To be asked before gradients of several ranks are added: the sum does not tell whose it was. One read.
void require_finite_gradients(const Layout& layout, std::size_t offset, std::span<const float> values);

/// An event for every segment in which something was selected; `positions` ascending, in the block.
void count_events(const ExchangeContext& context, std::span<const std::uint32_t> positions);

}  // namespace hearsay
