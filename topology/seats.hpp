#pragma once
// Which processes work at the vertices of the graph, and where in a process's memory another one may write.
//   P vertices:      process p < P begins at vertex p
//   S spares:        processes P … P + S − 1, each of which replaces a dead process at most once
//   a memory's slots: one for each neighbour of the process that began there, then one for each spare
// Every process writes into slots of its own. So what a process still writes that was wrongly taken for dead lands
// where nobody reads, and never where its replacement writes; and what a replacement finds is zero, as at the start.
// A spare, which may come to any vertex, has as many slots as the largest neighbourhood needs. Without spares there
// is a process a vertex, and a slot a neighbour.
#include <algorithm>
#include <cstddef>

#include "topology/topology.hpp"

namespace hearsay {

class Seats {
 public:
  /// The vertices of a graph, without spares: an implicit conversion. `topology` must outlive it.
  Seats(const Topology& topology, int spares = 0) : topology_(&topology), spares_(spares) {
    for (int v = 0; spares > 0 && v < count(); ++v) largest_ = std::max(largest_, topology.degree(v));
  }

  const Topology& topology() const { return *topology_; }
  int count() const { return topology_->ranks(); }
  int spares() const { return spares_; }
  int processes() const { return count() + spares_; }
  bool is_spare(int process) const { return process >= count(); }
  /// Slots in the memory of a process that are of neighbours; those of spares follow.
  std::size_t neighbour_slots(int process) const { return is_spare(process) ? largest_ : topology_->degree(process); }
  std::size_t slots(int process) const { return neighbour_slots(process) + static_cast<std::size_t>(spares_); }

  struct Standing {
    int process, vertex;
  };
  /// Which slot of the memory of `owner` its neighbour `writer` has.
  std::size_t slot(const Standing& owner, const Standing& writer) const {
    if (is_spare(writer.process))
      return neighbour_slots(owner.process) + static_cast<std::size_t>(writer.process - count());
    return topology_->slot(owner.vertex, writer.vertex);
  }

 private:
  const Topology* topology_;
  int spares_;
  std::size_t largest_ = 0;
};

}  // namespace hearsay
