#include "apps/bench/between_ranks/mass_balance.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "base/random.hpp"
#include "runtime/replica/parameters.hpp"

namespace hearsay {

std::uint64_t MassBalance::weighted(std::span<const float> values, int factor) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0.0F) continue;
    // Rounded, since a mean over three ranks, say, is not exact; the sum that it was made of is a whole number.
    const double whole = std::nearbyint(static_cast<double>(factor) * static_cast<double>(values[i]));
    sum += scramble(seed_ + i) * static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
  }
  return sum;
}

MassBalance::Statement MassBalance::statement(std::span<const float> replica) const {
  return {.balance = sum_, .replica_hash = hearsay::replica_hash(replica)};
}

void require_laws(std::string_view algorithm, std::span<const MassBalance::Statement> statements) {
  std::uint64_t left = 0;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    left += statements[rank].balance;
    if (statements[rank].replica_hash != statements.front().replica_hash)
      throw std::logic_error("the replica of rank " + std::to_string(rank) + " under " + std::string(algorithm) +
                             " is not the same as that of rank 0");
  }
  if (left != 0)
    throw std::logic_error("what " + std::string(algorithm) +
                           " applied and what all ranks keep are not the sum of what they put in");
}

}  // namespace hearsay
