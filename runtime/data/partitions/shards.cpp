// shards: the examples sorted by label are cut into P·s pieces (shards), and every rank gets s of them.
//   s = 1: rank i holds the i-th piece, so that each rank knows one or two classes only;
//   s > 1: the shards are dealt at random.
// McMahan, Moore, Ramage, Hampson & Agüera y Arcas 2017, section 3 (200 shards of 300, two a client).
// Deviates from the paper in: the cut follows the deal, so that any N and P fit: rank i's total (N/P, rounded up for
// the first N mod P ranks) is divided over its s shards, and totals differ by at most one.
// Cost: no messages; P·s draws, 8N bytes.
#include <numeric>

#include "runtime/data/partition.hpp"

namespace hearsay {
namespace {

std::vector<std::uint32_t> sorted_by_group(const GroupedExamples& examples) {
  std::vector<std::uint32_t> order;
  order.reserve(examples.size);
  for (const auto& indices : by_group(examples)) order.insert(order.end(), indices.begin(), indices.end());
  return order;
}

class Shards : public Partition {
 public:
  explicit Shards(Config& config)
      : per_rank_(static_cast<std::size_t>(config.integer("shards_per_rank", 1, Range::between(1, 1e6),
                                                          "pieces of the label-sorted data a rank gets"))) {}

  std::vector<std::vector<std::uint32_t>> split(const GroupedExamples& examples, int ranks,
                                                Random& random) const override {
    const auto parts = static_cast<std::size_t>(ranks);
    require_examples(examples.size, parts * per_rank_, ranks);
    const auto owners = deal(parts, random);
    const auto totals = equal_sizes(examples.size, parts);
    std::vector<std::size_t> sizes, dealt(parts, 0);
    for (const std::size_t owner : owners) sizes.push_back(equal_sizes(totals[owner], per_rank_)[dealt[owner]++]);

    const auto shards = cut(sorted_by_group(examples), sizes);
    std::vector<std::vector<std::uint32_t>> shares(parts);
    for (std::size_t s = 0; s < shards.size(); ++s)
      shares[owners[s]].insert(shares[owners[s]].end(), shards[s].begin(), shards[s].end());
    return shares;
  }

 private:
  /// The owner of every shard.
  std::vector<std::size_t> deal(std::size_t ranks, Random& random) const {
    std::vector<std::size_t> owners(ranks * per_rank_);
    for (std::size_t s = 0; s < owners.size(); ++s) owners[s] = s / per_rank_;
    if (per_rank_ > 1) random.shuffle(std::span(owners));
    return owners;
  }

  std::size_t per_rank_;
};

}  // namespace

PartitionEntry shards_partition() {
  return {
      .name = "shards",
      .summary = "pieces of the label-sorted data: every rank knows few classes",
      .equation = "label-sorted examples cut into P·s shards, s of them a rank (in order for s = 1, else at random)",
      .cost = "no messages; P·s draws, 8N bytes",
      .citation = "McMahan et al. 2017, section 3",
      .make = [](Config& config) -> std::unique_ptr<Partition> { return std::make_unique<Shards>(config); }};
}

}  // namespace hearsay
