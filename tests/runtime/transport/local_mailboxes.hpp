#pragma once
// P mailboxes in one process, driven by hand.
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/transport/ledger.hpp"
#include "runtime/transport/mailbox.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay::test {

inline Topology complete_graph(int ranks) {
  Config config = Config::from_text("graph: {name: complete}\nweights: {name: metropolis}");
  return TopologyPlan(config).build(ranks);
}

/// On local memory, in a complete graph. `patience`: RemoteMemory's.
struct LocalMailboxes {
  LocalMailboxes(int ranks, std::size_t capacity, int patience = 0, Mailbox::Tails tails = Mailbox::Tails::may_wait)
      : topology(complete_graph(ranks)),
        blocks(std::vector<std::size_t>(static_cast<std::size_t>(ranks),
                                        MailboxMap{.degree = ranks - 1, .capacity_bytes = capacity}.total_bytes())) {
    for (int r = 0; r < ranks; ++r) {
      ledgers.push_back(std::make_unique<Ledger>(static_cast<std::size_t>(ranks - 1), 0));
      memories.push_back(std::make_unique<LocalMemory>(blocks, r, patience));
      boxes.push_back(std::make_unique<Mailbox>(*memories.back(), topology, r, capacity, *ledgers.back(), tails));
    }
  }
  Mailbox& operator[](int rank) { return *boxes[static_cast<std::size_t>(rank)]; }

  Topology topology;
  LocalBlocks blocks;
  std::vector<std::unique_ptr<Ledger>> ledgers;
  std::vector<std::unique_ptr<LocalMemory>> memories;
  std::vector<std::unique_ptr<Mailbox>> boxes;
};

/// Looks until the mailbox does not put up any longer with what should be there and is not.
inline void look_often(Mailbox& mailbox) {
  for (int look = 0; look <= Mailbox::most_looks; ++look) mailbox.progress();
}

inline SharedPacket packet_of(std::size_t bytes, int sender, Iteration k) {
  auto packet = std::make_shared<OutgoingPacket>();
  packet->bytes.resize(bytes);
  seal_packet(packet->bytes, sender, k, 0);
  return packet;
}

}  // namespace hearsay::test
