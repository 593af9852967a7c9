#pragma once
// Which rank trains on which examples.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/config/table.hpp"
#include "base/random.hpp"
#include "runtime/data/examples.hpp"

namespace hearsay {

/// Cuts a training set into one share a rank. Every rank computes all shares from the same stream and takes its own, so
/// nothing is communicated.
class Partition {
 public:
  virtual ~Partition() = default;
  /// `ranks` lists of indices of examples: every index in exactly one of them, no list empty.
  /// Throws ConfigError if there are fewer examples than ranks, or no groups for a partition that cuts by them;
  /// std::logic_error for a group outside [0, count).
  virtual std::vector<std::vector<std::uint32_t>> split(const GroupedExamples& examples, int ranks,
                                                        Random& random) const = 0;
  /// Whether every share has the distribution of the whole set: a rank may then be dealt another one every epoch.
  virtual bool shares_are_alike() const { return false; }
};

using PartitionEntry = Entry<Partition>;
std::span<const PartitionEntry> partitions();

/// `total` in `parts` sizes that differ by at most one, the larger ones first.
std::vector<std::size_t> equal_sizes(std::size_t total, std::size_t parts);

/// `order` cut into consecutive pieces of these sizes, whose sum is its length.
std::vector<std::vector<std::uint32_t>> cut(std::span<const std::uint32_t> order, std::span<const std::size_t> sizes);

/// 0, …, n−1. Throws std::logic_error if they do not fit 32 bits.
std::vector<std::uint32_t> file_order(std::size_t n);

/// The indices of each group, ascending. Throws ConfigError if the examples have no groups, std::logic_error for a
/// group outside [0, count).
std::vector<std::vector<std::uint32_t>> by_group(const GroupedExamples& examples);

/// Throws ConfigError if there are fewer than `needed` examples for `ranks` ranks.
void require_examples(std::size_t examples, std::size_t needed, int ranks);

}  // namespace hearsay
