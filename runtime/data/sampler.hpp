#pragma once
// The order in which a rank sees its share, cut into batches.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace hearsay {

/// How an epoch is cut into ⌈samples/batch⌉ batches: whole ones and a last one with what is left, whose few examples
/// count as much as a whole batch, or such as differ by one example at most.
enum class Batches { whole, even };

/// Draws batches of indices without end. An epoch has `samples_per_epoch` draws in ⌈samples/batch⌉ batches; with the
/// same two numbers on every rank (⌈N/P⌉ samples), all ranks have equally many iterations.
///
/// With `shuffle`, an epoch of at least the share's size is one new permutation of the share after the other, the last
/// one cut off: within an epoch, counts differ by at most one. A shorter epoch has no example twice and leaves the rest
/// to the next ones: at the end of every epoch, counts since the beginning differ by at most one. Without `shuffle`,
/// the share is run through in its order, again and again, across epochs.
class Sampler {
 public:
  /// Throws std::logic_error if the share is empty or a size is zero.
  Sampler(std::vector<std::uint32_t> share, std::size_t samples_per_epoch, std::size_t batch_size, bool shuffle,
          std::uint64_t seed, Batches batches = Batches::whole);

  std::int64_t iterations_per_epoch() const;

  /// From now on every epoch has the share that is dealt for it, e = 0, 1, …
  void deal(std::function<std::vector<std::uint32_t>(std::uint64_t e)> share_of_epoch);

  /// As if `batches` more had been asked for: what a rank sees is a function of the seed and of how many it has seen.
  /// Cost: the shuffles of so many epochs.
  void skip(std::int64_t batches);
  /// The next batch; valid until the next call.
  std::span<const std::uint32_t> next();

 private:
  std::size_t next_size() const;
  void start_epoch();
  void take_dealt();
  void run_on();
  void permute();
  void take_unseen();

  std::vector<std::uint32_t>
      share_;  // short epochs: the last `unseen_` have not been drawn in this pass over the share
  std::size_t unseen_ = 0;
  std::size_t samples_per_epoch_, batch_size_;
  bool shuffle_;
  Batches batches_;
  Random random_;
  std::function<std::vector<std::uint32_t>(std::uint64_t)> dealt_;
  std::uint64_t epochs_dealt_ = 0;
  std::vector<std::uint32_t> epoch_;  // the draws of this epoch, of which `position_` have been handed out
  std::size_t position_ = 0;
  std::size_t next_in_order_ = 0;  // without shuffle
};

}  // namespace hearsay
