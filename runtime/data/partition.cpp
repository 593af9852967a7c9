#include "runtime/data/partition.hpp"

#include <array>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace hearsay {

PartitionEntry iid_partition();
PartitionEntry contiguous_partition();
PartitionEntry shards_partition();
PartitionEntry dirichlet_partition();

std::span<const PartitionEntry> partitions() {
  static const std::array table{iid_partition(), contiguous_partition(), shards_partition(), dirichlet_partition()};
  return table;
}

std::vector<std::size_t> equal_sizes(std::size_t total, std::size_t parts) {
  std::vector<std::size_t> sizes(parts, total / parts);
  for (std::size_t i = 0; i < total % parts; ++i) ++sizes[i];
  return sizes;
}

std::vector<std::vector<std::uint32_t>> cut(std::span<const std::uint32_t> order, std::span<const std::size_t> sizes) {
  std::vector<std::vector<std::uint32_t>> pieces;
  for (const std::size_t size : sizes) {
    const auto piece = order.first(size);
    pieces.emplace_back(piece.begin(), piece.end());
    order = order.subspan(size);
  }
  return pieces;
}

std::vector<std::uint32_t> file_order(std::size_t n) {
  if (n > std::numeric_limits<std::uint32_t>::max()) throw std::logic_error("more than 2^32 examples");
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  return order;
}

std::vector<std::vector<std::uint32_t>> by_group(const GroupedExamples& examples) {
  if (examples.groups.empty() && examples.size > 0)
    throw ConfigError(
        "data.partition: these examples have neither classes nor documents by which shares could be cut; use iid or "
        "contiguous");
  std::vector<std::vector<std::uint32_t>> indices(examples.count);
  for (const std::uint32_t i : file_order(examples.groups.size())) {
    const std::uint32_t group = examples.groups[i];
    if (group >= examples.count) {
      throw std::logic_error("label " + std::to_string(group) + " of example " + std::to_string(i) + " is not below " +
                             std::to_string(examples.count));
    }
    indices[group].push_back(i);
  }
  return indices;
}

void require_examples(std::size_t examples, std::size_t needed, int ranks) {
  if (examples >= needed) return;
  throw ConfigError("data: " + std::to_string(examples) + " training examples cannot be dealt to " +
                    std::to_string(ranks) + " ranks, which takes at least " + std::to_string(needed) +
                    "; use fewer ranks, fewer shards or more data");
}

}  // namespace hearsay
