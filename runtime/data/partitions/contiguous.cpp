// contiguous: share_i = the i-th of P nearly equal pieces of the examples in the order of the file.
// Draws nothing; as skewed as the file is sorted. Sizes differ by at most one.
// Cost: no messages; 4N bytes.
#include "runtime/data/partition.hpp"

namespace hearsay {
namespace {

class Contiguous : public Partition {
 public:
  std::vector<std::vector<std::uint32_t>> split(const GroupedExamples& examples, int ranks, Random&) const override {
    const auto parts = static_cast<std::size_t>(ranks);
    require_examples(examples.size, parts, ranks);
    return cut(file_order(examples.size), equal_sizes(examples.size, parts));
  }
};

}  // namespace

PartitionEntry contiguous_partition() {
  return {.name = "contiguous",
          .summary = "the file's order cut into equal pieces",
          .equation = "share_i = piece i of P of the examples in file order",
          .cost = "no messages; 4N bytes",
          .citation = "",
          .make = [](Config&) -> std::unique_ptr<Partition> { return std::make_unique<Contiguous>(); }};
}

}  // namespace hearsay
