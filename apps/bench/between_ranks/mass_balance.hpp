#pragma once
// The two laws of a synchronous exchange of the global path, asked without sending blocks about: what is applied and
// what all ranks keep is what they put in, and all replicas are the same bits. For gradients of whole numbers, of which
// every sum is exact. Each rank adds its values up with a random weight per position, the same on all ranks, modulo
// 2^64: the sums of all ranks are 0 together, and a violation escapes with a probability of about 2^−64.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hearsay {

class MassBalance {
 public:
  explicit MassBalance(std::uint64_t seed) : seed_(seed) {}
  void put_in(std::span<const float> gradient) { sum_ += weighted(gradient, 1); }
  /// A mean over `ranks` ranks, to be said once, by one of those that have it.
  void applied(std::span<const float> mean, int ranks) { sum_ -= weighted(mean, ranks); }
  void kept(std::span<const float> residual) { sum_ -= weighted(residual, 1); }

  /// What one rank says at the end.
  struct Statement {
    std::uint64_t balance, replica_hash;
  };
  Statement statement(std::span<const float> replica) const;

 private:
  std::uint64_t weighted(std::span<const float> values, int factor) const;

  std::uint64_t seed_, sum_ = 0;
};

/// Throws std::logic_error, naming the algorithm, unless both laws hold; `statements` of all ranks.
void require_laws(std::string_view algorithm, std::span<const MassBalance::Statement> statements);

}  // namespace hearsay
