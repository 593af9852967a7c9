#pragma once
// The time line of one rank: trace.rankNNNN.json, in the trace event format that Chrome and Perfetto read.
#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/replica/parameters.hpp"
#include "runtime/transport/ledger.hpp"

namespace hearsay {

/// Keeps what the ledger sees of the first `iterations` iterations (0: all) in memory; `write` makes the file. Both
/// threads may record. Costs about 50 ns and 48 bytes an event.
class Trace final : public LedgerObserver {
 public:
  struct Rank {
    int rank = 0, ranks = 1;
    std::vector<int> neighbours;  ///< ranks, in the order of the ledger's edges
    std::string host{};           ///< ranks of one host read one clock
    std::string run_id{};
  };
  /// Times count from `origin`.
  Trace(Rank rank, Iteration iterations, TimePoint origin);

  /// From now on events belong to iteration k. Computing thread.
  void iteration(Iteration k) { iteration_.store(k, std::memory_order_relaxed); }
  /// The backward pass has the gradient of this segment. Computing thread.
  void gradient(SegmentId segment, TimePoint at);

  void phase(const PhaseSpan& span) override;
  void packets_sent(std::size_t edge, std::size_t packets, TimePoint from, TimePoint to) override;
  void packet_taken(std::size_t edge, TimePoint at) override;

  /// Writes `directory`/trace.rankNNNN.json. Throws DataError.
  void write(const std::filesystem::path& directory) const;

 private:
  struct Put {
    std::size_t edge, first_packet, packets;
    TimePoint from, to;
    Iteration iteration;
  };
  struct Taken {
    std::size_t edge, packet;
    TimePoint at;
  };
  struct Span {
    PhaseSpan span;
    Iteration iteration;
  };
  struct Gradient {
    SegmentId segment;
    TimePoint at;
    Iteration iteration;
  };

  bool over() const;

  Rank rank_;
  Iteration iterations_;
  TimePoint origin_;
  std::atomic<Iteration> iteration_{0};
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  std::vector<Put> puts_;
  std::vector<Taken> taken_;
  std::vector<Gradient> gradients_;
  std::vector<std::size_t> sent_, received_;  // packets so far, by edge: the same numbers at both ends
};

}  // namespace hearsay
