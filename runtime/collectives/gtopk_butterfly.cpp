// gTopKAllReduce as a butterfly.
//   v ← own;  members beyond the largest power of two Q ≤ P send v to the one Q before them, which merges;
//   for d = 1, 2, 4, … < Q: members m and m xor d exchange v, and both cut (lower + higher) to its k largest;
//   the result goes to the members beyond Q.
// The authors' later code (gtopkr) does this for powers of two; the paper's is shi2019gtopk, Algorithm 3.
// Deviates from the paper in: every member merges, instead of one that broadcasts: half the messages and half the bytes
// of the tree, the same result for powers of two; any number of members.
// Cost per member: log2 Q messages of at most k entries each way, log2 Q merges of 2k entries; one message each way
// more for a member that folds.
#include <bit>
#include <utility>

#include "runtime/collectives/gtopk_account.hpp"

namespace hearsay {
namespace {

class Butterfly {
 public:
  Butterfly(const Group& group, const SparseVector& own, const SparseWire& wire, const GTopKOptions& options)
      : group_(group),
        own_(own),
        wire_(wire),
        rule_(options.rule),
        account_(own, wire, options),
        core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())))),
        partial_(own) {}

  GTopKResult run() {
    if (group_.index() >= core_) return account_.finish(ask(group_.member(group_.index() - core_)));
    const bool folds = group_.index() + core_ < group_.size();
    if (folds) fold(group_.member(group_.index() + core_));
    for (int distance = 1; distance < core_; distance *= 2) cross(distance);
    if (core_ < group_.size()) round_result();
    if (folds) tell(group_.member(group_.index() + core_));
    return account_.finish(std::move(partial_));
  }

 private:
  SparseVector ask(int partner);
  void fold(int folded);
  void cross(int distance);
  void round_result();
  void tell(int folded);
  void keep_alive();
  Peers& peers() const { return group_.peers(); }

  const Group& group_;
  const SparseVector& own_;
  const SparseWire& wire_;
  ResidualRule rule_;
  GTopKAccount account_;
  int core_;              // Q
  SparseVector partial_;  // the sum of the members met so far, cut to k
  OwnedMessage result_;   // for a folded member
  std::vector<std::uint32_t> folded_sent_, folded_alive_;
};

/// A member beyond Q hands its contribution over and waits for the result.
SparseVector Butterfly::ask(int partner) {
  const SparseWire::Sent up = wire_.prepare(own_);
  account_.rounded(up.rest, 0, 1);
  peers().send(partner, up.message.view());
  const Told told = read_told(peers().receive(partner), own_.indices, rule_, partner);
  if (rule_ == ResidualRule::owner) account_.survivors(told.alive);
  return wire_.decode(told.result);
}

void Butterfly::fold(int folded) {
  const SparseVector theirs = wire_.decode(peers().receive(folded));
  folded_sent_ = folded_alive_ = theirs.indices;
  partial_ = account_.merge(partial_, theirs, 0, 1);
  keep_alive();
}

// 2·distance members end up with the same sum; `distance` of them hold each of its halves.
void Butterfly::cross(int distance) {
  const int me = group_.index();
  const int partner = me ^ distance;
  const SparseWire::Sent sent = wire_.prepare(partial_);
  account_.rounded(sent.rest, me % distance, distance);
  std::vector<std::byte> bytes;
  peers().exchange(group_.member(partner), sent.message.view(), group_.member(partner), bytes);
  const SparseVector theirs = wire_.decode(bytes);
  const SparseVector& lower = me < partner ? sent.received : theirs;
  const SparseVector& higher = me < partner ? theirs : sent.received;
  partial_ = account_.merge(lower, higher, me % (2 * distance), 2 * distance);
  keep_alive();
}

void Butterfly::keep_alive() {
  if (rule_ != ResidualRule::owner) return;
  account_.survivors(partial_.indices);
  folded_alive_ = intersection(folded_alive_, partial_.indices);
}

// What a folded member will read: everybody must use the same.
void Butterfly::round_result() {
  SparseWire::Sent sent = wire_.prepare(partial_);
  account_.rounded(sent.rest, group_.index(), core_);
  result_ = std::move(sent.message);
  partial_ = std::move(sent.received);
}

void Butterfly::tell(int folded) {
  if (rule_ == ResidualRule::owner) result_ = with_flags(flags_of(folded_sent_, folded_alive_), result_);
  peers().send(folded, result_.view());
}

}  // namespace

GTopKResult gtopk_butterfly(const Group& group, const SparseVector& own, const SparseWire& wire,
                            const GTopKOptions& options) {
  return Butterfly(group, own, wire, options).run();
}

}  // namespace hearsay
