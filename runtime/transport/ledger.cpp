#include "runtime/transport/ledger.hpp"

#include <algorithm>
#include <cmath>

namespace hearsay {
namespace {

void counters_state(Archive& archive, const char* name, const std::vector<Counter*>& counters) {
  std::vector<std::uint64_t> values;
  for (const Counter* counter : counters) values.push_back(counter->value());
  archive.values(name, std::span(values));
  for (std::size_t i = 0; archive.loads() && i < values.size(); ++i) counters[i]->set(values[i]);
}

}  // namespace

void Staleness::record(const Age& age) {
  const auto iterations = static_cast<std::uint64_t>(std::max<std::int64_t>(age.iterations, 0));
  const auto ns = static_cast<std::uint64_t>(age.time.count());
  histogram[std::min<std::uint64_t>(iterations, bins - 1)].add(1);
  by_time[AgeBins::of(age.time)].add(1);
  sum.add(iterations);
  samples.add(1);
  if (iterations > maximum.value()) maximum.add(iterations - maximum.value());
  if (ns > longest_ns.value()) longest_ns.add(ns - longest_ns.value());
}

EdgeTable::EdgeTable(std::size_t edges) : pages_((edges + page_edges - 1) / page_edges) {}

EdgeTable::~EdgeTable() {
  for (const std::atomic<Page*>& page : pages_) delete page.load();
}

EdgeCounters& EdgeTable::operator[](std::size_t edge) {
  std::atomic<Page*>& known = pages_[edge / page_edges];
  Page* page = known.load(std::memory_order_acquire);
  if (page == nullptr) {
    auto made = std::make_unique<Page>();
    if (known.compare_exchange_strong(page, made.get(), std::memory_order_acq_rel)) page = made.release();
  }
  return (*page)[edge % page_edges];
}

const EdgeCounters& EdgeTable::operator[](std::size_t edge) const {
  static const EdgeCounters never_counted{};
  const Page* const page = pages_[edge / page_edges].load(std::memory_order_acquire);
  return page == nullptr ? never_counted : (*page)[edge % page_edges];
}

Ledger::Ledger(std::size_t neighbours, std::size_t segments, Clock clock)
    : neighbours_(neighbours),
      segment_count_(segments),
      clock_(clock),
      edges_(neighbours),
      segments_(std::make_unique<SegmentCounters[]>(segments)) {}

void Ledger::packet_put(std::size_t edge, const OutgoingPacket& packet) {
  EdgeCounters& counters = edges_[edge];
  std::size_t payload = 0;
  std::size_t index = 0;
  for (const SegmentRecord& record : packet.records) {
    payload += record.payload_bytes;
    index += record.index_bytes;
    if (record.segment == SegmentRecord::none) continue;
    segments_[record.segment].messages.add(1);
    segments_[record.segment].payload_bytes.add(record.payload_bytes);
    segments_[record.segment].index_bytes.add(record.index_bytes);
    segments_[record.segment].value_events.add(record.values);
  }
  counters.puts.add(1);
  counters.packets.add(1);
  counters.messages.add(packet.records.size());
  counters.payload_bytes.add(payload);
  counters.index_bytes.add(index);
  counters.header_bytes.add(packet.bytes.size() - payload - index);
}

void Ledger::header_put(std::size_t edge, std::size_t bytes) {
  edges_[edge].puts.add(1);
  edges_[edge].header_bytes.add(bytes);
}

void Ledger::control_put(std::size_t edge, std::size_t bytes) {
  edges_[edge].puts.add(1);
  edges_[edge].control_bytes.add(bytes);
}

void Ledger::control_put_elsewhere(std::size_t bytes) {
  elsewhere_puts_.add(1);
  elsewhere_bytes_.add(bytes);
}

void Ledger::message_sent(std::size_t edge, const EncodedSize& content, std::size_t bytes) {
  EdgeCounters& counters = edges_[edge];
  counters.puts.add(1);
  counters.packets.add(1);
  counters.messages.add(1);
  counters.payload_bytes.add(content.payload_bytes);
  counters.index_bytes.add(content.index_bytes);
  counters.header_bytes.add(bytes - content.total());
}

void Ledger::published(std::size_t edge, std::size_t packets, TimePoint from) {
  if (observer_ != nullptr) observer_->packets_sent(edge, packets, from, now());
}

void Ledger::taken(std::size_t edge) {
  if (observer_ != nullptr) observer_->packet_taken(edge, now());
}

Staleness& Ledger::staleness_of(std::size_t edge) {
  if (!staleness_) {
    staleness_ = std::make_unique<Staleness[]>(neighbours_);
    mixed_.store(staleness_.get(), std::memory_order_release);
  }
  return staleness_[edge];
}

void Ledger::mixed(std::size_t edge, const Age& age) { staleness_of(edge).record(age); }

// A page of edges that were never counted is not made.
void Ledger::state(Archive& archive) {
  for (std::size_t e = 0; e < neighbours_; ++e) {
    bool counted = edge(e).puts.value() > 0 || edge(e).deferred.value() > 0;
    archive.value("an edge is counted", counted);
    if (!counted) continue;
    EdgeCounters& own = edges_[e];
    counters_state(archive, "counts of an edge",
                   {&own.messages, &own.deferred, &own.packets, &own.puts, &own.payload_bytes, &own.index_bytes,
                    &own.header_bytes, &own.control_bytes});
  }
  for (std::size_t s = 0; s < segment_count_; ++s)
    counters_state(archive, "counts of a segment",
                   {&segments_[s].events, &segments_[s].messages, &segments_[s].payload_bytes,
                    &segments_[s].index_bytes, &segments_[s].value_events});
  bool mixed = staleness_ != nullptr;
  archive.value("copies were mixed", mixed);
  for (std::size_t e = 0; mixed && e < neighbours_; ++e) {
    Staleness& of = staleness_of(e);
    std::vector<Counter*> counters{&of.sum, &of.samples, &of.maximum, &of.longest_ns};
    for (Counter& bin : of.histogram) counters.push_back(&bin);
    for (Counter& bin : of.by_time) counters.push_back(&bin);
    counters_state(archive, "ages of copies", counters);
  }
  counters_state(archive, "counts without an edge", {&elsewhere_puts_, &elsewhere_bytes_});
  std::vector<Counter*> times;
  for (Counter& phase : nanoseconds_) times.push_back(&phase);
  counters_state(archive, "times", times);
}

const Staleness& Ledger::staleness(std::size_t edge) const {
  static const Staleness never_mixed{};
  const Staleness* const all = mixed_.load(std::memory_order_acquire);
  return all == nullptr ? never_mixed : all[edge];
}

void Ledger::spend(const PhaseSpan& span, std::chrono::nanoseconds within) {
  const std::chrono::nanoseconds time = span.to - span.from - within;
  nanoseconds_[static_cast<std::size_t>(span.phase)].add(static_cast<std::uint64_t>(time.count()));
  if (!of_communication_thread(span.phase)) charged_ += time;
  if (observer_ != nullptr) observer_->phase(span);
}

void Ledger::computed_while_waiting(double seconds) {
  Counter& waited = nanoseconds_[static_cast<std::size_t>(Phase::wait)];
  const auto ns = std::min(static_cast<std::uint64_t>(std::llround(seconds * 1e9)), waited.value());
  waited.set(waited.value() - ns);
  nanoseconds_[static_cast<std::size_t>(Phase::compute)].add(ns);
}

double Ledger::seconds(Phase phase) const {
  return 1e-9 * static_cast<double>(nanoseconds_[static_cast<std::size_t>(phase)].value());
}

std::uint64_t Ledger::staleness_max() const {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < neighbours_; ++i) largest = std::max(largest, staleness(i).maximum.value());
  return largest;
}

LedgerTotals Ledger::totals() const {
  LedgerTotals totals;
  for (std::size_t i = 0; i < neighbours_; ++i) {
    const EdgeCounters& edge = edges_[i];
    totals.messages += edge.messages.value();
    totals.deferred += edge.deferred.value();
    totals.packets += edge.packets.value();
    totals.puts += edge.puts.value();
    totals.payload_bytes += edge.payload_bytes.value();
    totals.index_bytes += edge.index_bytes.value();
    totals.header_bytes += edge.header_bytes.value();
    totals.control_bytes += edge.control_bytes.value();
  }
  totals.puts += puts_elsewhere();
  totals.control_bytes += bytes_elsewhere();
  for (std::size_t s = 0; s < segment_count_; ++s) {
    totals.events += segments_[s].events.value();
    totals.value_events += segments_[s].value_events.value();
  }
  return totals;
}

}  // namespace hearsay
