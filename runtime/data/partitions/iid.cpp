// iid: share_i = the i-th of P nearly equal pieces of a random permutation of all examples.
// Every share has the distribution of the whole set; sizes differ by at most one.
// Cost: no messages; N draws, 4N bytes.
#include "runtime/data/partition.hpp"

namespace hearsay {
namespace {

class Iid : public Partition {
 public:
  std::vector<std::vector<std::uint32_t>> split(const GroupedExamples& examples, int ranks,
                                                Random& random) const override {
    const auto parts = static_cast<std::size_t>(ranks);
    require_examples(examples.size, parts, ranks);
    auto order = file_order(examples.size);
    random.shuffle(std::span(order));
    return cut(order, equal_sizes(order.size(), parts));
  }
  bool shares_are_alike() const override { return true; }
};

}  // namespace

PartitionEntry iid_partition() {
  return {.name = "iid",
          .summary = "a random permutation cut into equal pieces: every rank sees the same distribution",
          .equation = "share_i = piece i of P of a random permutation of the examples",
          .cost = "no messages; N draws, 4N bytes",
          .citation = "",
          .make = [](Config&) -> std::unique_ptr<Partition> { return std::make_unique<Iid>(); }};
}

}  // namespace hearsay
