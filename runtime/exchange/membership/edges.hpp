#pragma once
// What a rank knows of the edges of its vertex: who sits at the other end, with which weight the edge mixes, and what
// becomes of it. Who keeps something of an edge (copies, what was learnt) listens.
//   mixes:   both ends know the same pair of copies; the edge has its weight of W
//   lost:    the other end is dead; the weight is back at this rank, so that W stays doubly stochastic on the living
//   begins:  another process has come to the other end, which knows nothing of this rank. Each end sends the other its
//            whole x, once; until both have it (`agree`) nothing else crosses the edge, and its weight is 0
// Changes come between two iterations only. Cost: a few words an edge; nothing in an iteration without a change.
#include <memory>
#include <vector>

#include "topology/topology.hpp"

namespace hearsay {

class Edges;

/// Hears what becomes of a rank's edges, from its making to its end. `edge` is an index of `Neighbourhood::neighbours`.
class EdgeListener {
 public:
  /// `edges` must outlive the listener.
  explicit EdgeListener(Edges& edges);
  EdgeListener(const EdgeListener&) = delete;
  EdgeListener& operator=(const EdgeListener&) = delete;

  /// Nothing crosses this edge any more.
  virtual void edge_lost(std::size_t edge) { static_cast<void>(edge); }
  /// There is another process at the other end.
  virtual void edge_begins(std::size_t edge) { static_cast<void>(edge); }
  /// An edge that has begun mixes from now on.
  virtual void edge_mixes(std::size_t edge) { static_cast<void>(edge); }
  /// A rank has died, at the other end of an edge (after `edge_lost`) or elsewhere.
  virtual void rank_lost() {}

 protected:
  virtual ~EdgeListener();

 private:
  Edges& edges_;
};

/// On the computing thread.
class Edges {
 public:
  /// The edges of the vertex where `process` begins; a spare, which has no vertex yet, has none.
  Edges(std::shared_ptr<const Topology> topology, int process);

  const Topology& topology() const { return *topology_; }
  /// The row of W, with the weights of now: 0 on an edge that does not mix, which leaves its weight to this rank.
  const Neighbourhood& neighbourhood() const { return neighbourhood_; }
  /// The vertex; of a spare without one its process.
  int rank() const { return neighbourhood_.rank; }

  int process_at(std::size_t edge) const { return ends_[edge].process; }
  bool lost(std::size_t edge) const { return ends_[edge].state == State::lost; }
  bool begins(std::size_t edge) const { return ends_[edge].state == State::begins; }
  bool mixes(std::size_t edge) const { return ends_[edge].state == State::mixes; }

  /// This process is dead.
  void lose_process(int process);
  void lose(std::size_t edge);
  /// The edge leads to another process from now on.
  void begin(std::size_t edge, int process);
  /// Both ends of an edge that begins have, or are about to have, the same pair of copies.
  void agree(std::size_t edge) { ends_[edge].agrees = true; }
  /// Edges that begin, and whose ends agree, mix from now on. True if there are any.
  bool admit();
  /// A spare sits at this vertex from now on. All of its edges are lost until they begin.
  void sit(int vertex);

 private:
  friend class EdgeListener;
  enum class State { mixes, lost, begins };
  struct End {
    int process;
    State state = State::mixes;
    bool agrees = false;
  };
  void weigh();
  template <class Tell>
  void tell_all(const Tell& tell);

  std::shared_ptr<const Topology> topology_;
  Neighbourhood whole_;  // with the weights that it has while all live
  Neighbourhood neighbourhood_;
  std::vector<End> ends_;
  std::vector<EdgeListener*> listeners_;
};

}  // namespace hearsay
