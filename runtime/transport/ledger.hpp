#pragma once
// The account of a run: every byte is counted where it is handed to MPI, never estimated.
//
// A rank's ledger counts what that rank sends (its out-edges), how old the copies are that it mixes (its in-edges), and
// where its time goes. Byte counters have one writer, the communication thread; event counters and times have one
// writer, the computing thread; anybody may read at any time.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/state/archive.hpp"
#include "runtime/transport/packet.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay {

/// A number with one writer and any readers.
class Counter {
 public:
  void add(std::uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// What went to one neighbour. A *message* is one event of one segment to one neighbour.
struct EdgeCounters {
  Counter messages;       ///< sent
  Counter deferred;       ///< held back because the ring was full, once per iteration and segment
  Counter packets;        ///< packets handed to MPI
  Counter puts;           ///< MPI calls that move data: packets, markers, heads, tails
  Counter payload_bytes;  ///< values
  Counter index_bytes;    ///< positions of sparse values
  Counter header_bytes;   ///< packet and segment headers, ring markers
  Counter control_bytes;  ///< heads (own out-edge) and tails (acknowledging the neighbour's packets)
  std::uint64_t bytes() const {
    return payload_bytes.value() + index_bytes.value() + header_bytes.value() + control_bytes.value();
  }
};

/// The counters of all edges, made sixteen at a time when one of them is first counted: on the global path everybody is
/// a neighbour, and few are ever sent to. Two threads may count.
class EdgeTable {
 public:
  explicit EdgeTable(std::size_t edges);
  ~EdgeTable();
  EdgeTable(const EdgeTable&) = delete;
  EdgeTable& operator=(const EdgeTable&) = delete;

  EdgeCounters& operator[](std::size_t edge);
  const EdgeCounters& operator[](std::size_t edge) const;  ///< zeros if it was never counted

 private:
  static constexpr std::size_t page_edges = 16;
  using Page = std::array<EdgeCounters, page_edges>;
  std::vector<std::atomic<Page*>> pages_;
};

struct SegmentCounters {
  Counter events;  ///< decisions to send, one an iteration at most
  Counter messages;
  Counter payload_bytes;
  Counter index_bytes;
  Counter value_events;  ///< values that fired by themselves, once for every neighbour that they went to
};

/// How old a neighbour's newest packet was when its copy was mixed.
struct Staleness {
  static constexpr std::size_t bins = 64;
  std::array<Counter, bins> histogram;          ///< 0, 1, …, 62, ≥ 63 iterations
  Counter sum, samples, maximum;                ///< of iterations; `maximum` only ever grows
  std::array<Counter, AgeBins::count> by_time;  ///< by AgeBins
  Counter longest_ns;                           ///< only ever grows
  void record(const Age& age);
};

/// Where time goes; each phase has one writer, the computing thread but for the last two.
/// `communicate` is the communication thread's time in collectives: the part of it that exceeds `wait` is hidden behind
/// the computing thread's other phases. `communicate_encode` is the part of `communicate` in which messages are encoded
/// and decoded.
enum class Phase : std::size_t {
  compute,
  trigger,
  select,
  encode,
  wait,
  mix,
  optimizer,
  evaluate,
  communicate,
  communicate_encode
};
inline constexpr std::array<const char*, 10> phase_names{
    "compute", "trigger",   "select",   "encode",      "wait",
    "mix",     "optimizer", "evaluate", "communicate", "communicate_encode"};

/// Whether a phase is written by the communication thread.
constexpr bool of_communication_thread(Phase phase) { return phase >= Phase::communicate; }

struct LedgerTotals {
  std::uint64_t events = 0, messages = 0, deferred = 0, packets = 0, puts = 0;
  std::uint64_t payload_bytes = 0, index_bytes = 0, header_bytes = 0, control_bytes = 0;
  std::uint64_t value_events = 0;
  std::uint64_t bytes() const { return payload_bytes + index_bytes + header_bytes + control_bytes; }
};

/// Segments that one piece of work is about, both included.
struct SegmentRange {
  SegmentId first = 0, last = 0;
};

struct PhaseSpan {
  Phase phase;
  TimePoint from, to;
  std::optional<SegmentRange> segments{};  ///< where the phase is about some of them only
};

/// Sees the times that pass through a ledger: a time line. `packets_sent` and the phases `communicate` and
/// `communicate_encode` come from the communication thread, everything else from the computing thread.
class LedgerObserver {
 public:
  virtual ~LedgerObserver() = default;
  virtual void phase(const PhaseSpan& span) = 0;
  /// Packets put into a neighbour's mailbox, complete and published at `to`.
  virtual void packets_sent(std::size_t edge, std::size_t packets, TimePoint from, TimePoint to) = 0;
  /// The oldest packet in the mailbox has been used.
  virtual void packet_taken(std::size_t edge, TimePoint at) = 0;
};

class Ledger {
 public:
  /// Times are readings of `clock`.
  Ledger(std::size_t neighbours, std::size_t segments, Clock clock = steady_time);
  /// Null: nobody watches. Not while another thread uses the ledger.
  void watched_by(LedgerObserver* observer) { observer_ = observer; }

  // Communication thread, where bytes are handed to MPI.
  void packet_put(std::size_t edge, const OutgoingPacket& packet);
  void header_put(std::size_t edge, std::size_t bytes);
  void control_put(std::size_t edge, std::size_t bytes);
  /// To a rank that is no neighbour.
  void control_put_elsewhere(std::size_t bytes);
  /// A point-to-point message of a collective: one message, one packet, one put.
  void message_sent(std::size_t edge, const EncodedSize& content, std::size_t bytes);
  void published(std::size_t edge, std::size_t packets, TimePoint from);

  // Computing thread.
  void event(SegmentId segment) { segments_[segment].events.add(1); }
  void defer(std::size_t edge, std::size_t messages) { edges_[edge].deferred.add(messages); }
  void mixed(std::size_t edge, const Age& age);
  void taken(std::size_t edge);
  /// `within`: what of it other phases have already been charged with.
  void spend(const PhaseSpan& span, std::chrono::nanoseconds within = {});
  /// So many seconds that are booked as waiting were computing, too: in a simulation, whose jobs run in their caller.
  void computed_while_waiting(double seconds);

  /// The time of all phases of the computing thread, for which it is; since this ledger was made.
  std::chrono::nanoseconds charged() const { return charged_; }

  TimePoint now() const { return clock_(); }
  /// All ranks at once, or nearly: their clocks begin.
  void start_together() { start_ = now(); }
  /// This rank comes later: the others have started so long ago.
  void start_after(TimePoint others) { start_ = now() - others; }
  TimePoint since_start() const { return now() - start_; }
  bool watched() const { return observer_ != nullptr; }
  const EdgeCounters& edge(std::size_t i) const { return edges_[i]; }
  const SegmentCounters& segment(SegmentId s) const { return segments_[s]; }
  const Staleness& staleness(std::size_t edge) const;
  std::size_t neighbours() const { return neighbours_; }
  std::size_t segments() const { return segment_count_; }
  double seconds(Phase phase) const;
  std::uint64_t staleness_max() const;  ///< over all in-edges, since the start
  LedgerTotals totals() const;
  /// What `control_put_elsewhere` has counted, and no edge.
  std::uint64_t puts_elsewhere() const { return elsewhere_puts_.value(); }
  std::uint64_t bytes_elsewhere() const { return elsewhere_bytes_.value(); }
  /// All counters and times. Loading replaces them: while nothing else counts.
  void state(Archive& archive);

 private:
  Staleness& staleness_of(std::size_t edge);

  std::size_t neighbours_, segment_count_;
  Clock clock_;
  TimePoint start_{};
  EdgeTable edges_;
  Counter elsewhere_puts_, elsewhere_bytes_;  // to ranks that are no neighbours
  std::unique_ptr<SegmentCounters[]> segments_;
  // Most of a ledger, and made when the first copy is mixed: never on the global path, where everybody is a neighbour.
  std::unique_ptr<Staleness[]> staleness_;
  std::atomic<const Staleness*> mixed_{nullptr};  // its beginning
  std::array<Counter, phase_names.size()> nanoseconds_;
  std::chrono::nanoseconds charged_{0};
  LedgerObserver* observer_ = nullptr;
};

/// Charges the time of a scope to a phase, less what timers within it charge to theirs: on the computing thread every
/// moment is charged once. The communication thread's phases are parts of each other.
class PhaseTimer {
 public:
  PhaseTimer(Ledger& ledger, Phase phase, std::optional<SegmentRange> segments = std::nullopt)
      : ledger_(ledger), phase_(phase), segments_(segments), start_(ledger.now()), charged_before_(charged()) {}
  ~PhaseTimer() {
    ledger_.spend({.phase = phase_, .from = start_, .to = ledger_.now(), .segments = segments_},
                  charged() - charged_before_);
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  std::chrono::nanoseconds charged() const {
    return of_communication_thread(phase_) ? std::chrono::nanoseconds(0) : ledger_.charged();
  }

  Ledger& ledger_;
  Phase phase_;
  std::optional<SegmentRange> segments_;
  TimePoint start_;
  std::chrono::nanoseconds charged_before_;
};

}  // namespace hearsay
