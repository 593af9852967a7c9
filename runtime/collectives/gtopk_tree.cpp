// gTopKAllReduce on a binomial tree.
//   v ← own;  for d = 1, 2, 4, …: the member at an odd multiple of d sends v to the one d before it and is done;
//   the other cuts v + (what came) to its k largest;  member 0 sends the result back down the same tree.
// shi2019gtopk, Algorithm 3.
// Deviates from the paper in: any number of members; positions ascend, so a merge is one pass; no barriers between
// rounds; one message instead of two for values and positions; exactly k entries, ties by lower position.
// Cost: member 0 receives ⌈log2 P⌉ and sends ⌈log2 P⌉ messages of at most k entries; ⌈log2 P⌉ merges of 2k entries.
#include <utility>

#include "runtime/collectives/gtopk_account.hpp"

namespace hearsay {
namespace {

class Tree {
 public:
  Tree(const Group& group, const SparseVector& own, const SparseWire& wire, const GTopKOptions& options)
      : group_(group), own_(own), wire_(wire), rule_(options.rule), account_(own, wire, options), partial_(own) {}

  GTopKResult run() {
    climb();
    SparseVector result = top_ == group_.size() ? root_result() : result_from_parent();
    for (; !children_.empty(); children_.pop_back()) tell(children_.back());
    if (rule_ == ResidualRule::owner) account_.survivors(alive_);
    return account_.finish(std::move(result));
  }

 private:
  struct Child {
    int index;
    std::vector<std::uint32_t> sent;  // positions
    std::vector<std::uint32_t> kept;  // positions of the sum after merging with it
  };

  void climb();
  SparseVector root_result();
  SparseVector result_from_parent();
  void tell(const Child& child);
  Peers& peers() const { return group_.peers(); }

  const Group& group_;
  const SparseVector& own_;
  const SparseWire& wire_;
  ResidualRule rule_;
  GTopKAccount account_;
  SparseVector partial_;              // the sum of this member's subtree, cut to k
  std::vector<Child> children_;       // in the order of merging
  int top_ = 0;                       // distance to the parent; the group's size at the root
  OwnedMessage down_;                 // the result as it travels
  std::vector<std::uint32_t> alive_;  // positions of the sum (before the last child told) that reach the result
};

void Tree::climb() {
  const int me = group_.index();
  for (top_ = 1; top_ < group_.size(); top_ *= 2) {
    if ((me & top_) != 0) return;
    if (me + top_ >= group_.size()) continue;
    const SparseVector theirs = wire_.decode(peers().receive(group_.member(me + top_)));
    partial_ = account_.merge(partial_, theirs, 0, 1);
    children_.push_back({me + top_, theirs.indices, partial_.indices});
  }
  top_ = group_.size();
}

SparseVector Tree::root_result() {
  SparseWire::Sent sent = wire_.prepare(partial_);
  account_.rounded(sent.rest, 0, 1);
  down_ = std::move(sent.message);
  alive_ = sent.received.indices;
  return std::move(sent.received);
}

SparseVector Tree::result_from_parent() {
  const int parent = group_.member(group_.index() - top_);
  const SparseWire::Sent up = wire_.prepare(partial_);
  account_.rounded(up.rest, 0, 1);
  peers().send(parent, up.message.view());
  Told told = read_told(peers().receive(parent), partial_.indices, rule_, parent);
  alive_ = std::move(told.alive);
  SparseWire::Received result = wire_.receive(std::move(told.result));
  down_ = std::move(result.message);
  return std::move(result.vector);
}

/// A position that this merge cut off may have come back with a later child: only those that it kept are alive.
void Tree::tell(const Child& child) {
  if (rule_ == ResidualRule::owner) {
    alive_ = intersection(alive_, child.kept);
    const OwnedMessage message = with_flags(flags_of(child.sent, alive_), down_);
    peers().send(group_.member(child.index), message.view());
  } else {
    peers().send(group_.member(child.index), down_.view());
  }
}

}  // namespace

GTopKResult gtopk_tree(const Group& group, const SparseVector& own, const SparseWire& wire,
                       const GTopKOptions& options) {
  return Tree(group, own, wire, options).run();
}

}  // namespace hearsay
