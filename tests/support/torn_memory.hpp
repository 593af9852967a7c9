#pragma once
// RemoteMemory that promises no more than MPI does, or less: words of which a load finds some bytes old and some new,
// and packets that arrive piece by piece behind the head that announces them. Driven by hand, in one thread.
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "tests/support/local_memory.hpp"

namespace hearsay::test {

class TornMemory final : public RemoteMemory {
 public:
  enum class Packets {
    at_once,  ///< as MPI promises: a flush completes them
    late      ///< pieces of them arrive at later calls of `sync`, whatever a flush has said
  };
  TornMemory(LocalBlocks& blocks, int rank, Packets packets, int patience, std::uint64_t seed)
      : blocks_(blocks), own_(blocks[rank]), packets_(packets), patience_(patience), random_(seed) {}

  std::span<std::byte> own() override { return own_; }
  void put(std::span<const std::byte> bytes, int target, std::size_t offset) override {
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const auto part = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
      pieces.push_back({target, offset + at, {part.begin(), part.end()}});
    }
    random_.shuffle(std::span(pieces));
    packets_under_way_.insert(packets_under_way_.end(), pieces.begin(), pieces.end());
    if (packets_ == Packets::at_once) land(packets_under_way_, packets_under_way_.size());
  }
  /// Some bytes of it at once.
  void store(const std::uint64_t& word, int target, std::size_t offset) override {
    std::array<std::size_t, sizeof word> order;
    std::iota(order.begin(), order.end(), std::size_t{0});
    random_.shuffle(std::span<std::size_t>(order));
    const auto bytes = std::as_bytes(std::span(&word, 1));
    for (const std::size_t i : order) words_under_way_.push_back({target, offset + i, {bytes[i]}});
    land(words_under_way_, random_.below(sizeof word));
  }
  /// True, and words whole, once in a while.
  bool flush(int) override {
    const bool complete = random_.below(3) == 0;
    land(words_under_way_, complete ? words_under_way_.size() : random_.below(words_under_way_.size() + 1));
    return complete;
  }
  void sync() override { land(packets_under_way_, random_.below(3)); }
  int patience() const override { return patience_; }

 private:
  static constexpr std::size_t piece_bytes = 24;
  struct Piece {
    int target;
    std::size_t offset;
    std::vector<std::byte> bytes;
  };
  void land(std::deque<Piece>& pieces, std::size_t count) {
    for (; count > 0 && !pieces.empty(); --count, pieces.pop_front()) {
      const Piece& piece = pieces.front();
      std::ranges::copy(piece.bytes, blocks_[piece.target].begin() + static_cast<std::ptrdiff_t>(piece.offset));
    }
  }

  LocalBlocks& blocks_;
  std::span<std::byte> own_;
  Packets packets_;
  int patience_;
  Random random_;
  std::deque<Piece> words_under_way_, packets_under_way_;
};

}  // namespace hearsay::test
