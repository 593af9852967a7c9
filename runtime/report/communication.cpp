// Ledgers of all ranks as three tables: edges, segments, staleness.
//
// A packed ledger is a list of 64-bit words (weights as their bits), since ranks of a job run on like machines:
//   rank, edges in use n, segments s, puts and bytes to ranks that are no neighbours,
//   n × (neighbour, weight, 8 edge counters, staleness: samples, sum, maximum, longest, two histograms),
//   s × (5 segment counters).
#include <array>
#include <bit>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/report.hpp"

namespace hearsay {
namespace {

struct EdgeRow {
  std::uint64_t neighbour = 0;
  double weight = 0.0;
  std::array<std::uint64_t, 8> counters{};  ///< in the order of EdgeCounters
  std::uint64_t samples = 0, sum = 0, maximum = 0, longest_ns = 0;
  std::array<std::uint64_t, Staleness::bins> histogram{};
  std::array<std::uint64_t, AgeBins::count> by_time{};
};

using SegmentRow = std::array<std::uint64_t, 5>;  ///< in the order of SegmentCounters

struct RankRows {
  std::uint64_t rank = 0;
  std::uint64_t puts_elsewhere = 0, bytes_elsewhere = 0;  ///< control bytes
  std::vector<EdgeRow> edges;
  std::vector<SegmentRow> segments;
};

class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : words_(bytes.size() / sizeof(std::uint64_t)) {
    const std::span<std::byte> own = std::as_writable_bytes(std::span(words_));
    std::ranges::copy(bytes.first(own.size()), own.begin());  // not memcpy: an empty span's pointer may be null
  }
  std::uint64_t next() {
    if (at_ == words_.size()) throw CommunicationError("a rank's packed ledger is too short");
    return words_[at_++];
  }
  template <std::size_t n>
  void next(std::array<std::uint64_t, n>& values) {
    for (std::uint64_t& value : values) value = next();
  }
  std::size_t left() const { return words_.size() - at_; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t at_ = 0;
};

/// On the global path everybody is everybody's neighbour, and most ranks never hear of each other.
bool was_used(const Ledger& ledger, std::size_t i) {
  return ledger.edge(i).puts.value() + ledger.edge(i).deferred.value() + ledger.staleness(i).samples.value() > 0;
}

void pack_edge(const Ledger& ledger, const Neighbourhood& neighbourhood, std::size_t i,
               std::vector<std::uint64_t>& words) {
  const EdgeCounters& edge = ledger.edge(i);
  const Staleness& staleness = ledger.staleness(i);
  words.push_back(static_cast<std::uint64_t>(neighbourhood.neighbours[i]));
  words.push_back(std::bit_cast<std::uint64_t>(neighbourhood.weights[i]));
  for (const Counter* counter : {&edge.messages, &edge.deferred, &edge.packets, &edge.puts, &edge.payload_bytes,
                                 &edge.index_bytes, &edge.header_bytes, &edge.control_bytes, &staleness.samples,
                                 &staleness.sum, &staleness.maximum, &staleness.longest_ns}) {
    words.push_back(counter->value());
  }
  for (const Counter& counter : staleness.histogram) words.push_back(counter.value());
  for (const Counter& counter : staleness.by_time) words.push_back(counter.value());
}

EdgeRow unpack_edge(Words& words) {
  EdgeRow row;
  row.neighbour = words.next();
  row.weight = std::bit_cast<double>(words.next());
  words.next(row.counters);
  row.samples = words.next();
  row.sum = words.next();
  row.maximum = words.next();
  row.longest_ns = words.next();
  words.next(row.histogram);
  words.next(row.by_time);
  return row;
}

RankRows unpack_ledger(std::span<const std::byte> bytes, std::size_t segments) {
  Words words(bytes);
  RankRows rows{.rank = words.next(), .edges = {}, .segments = {}};
  const std::uint64_t edge_count = words.next();
  if (words.next() != segments) throw CommunicationError("ranks disagree about the number of segments");
  rows.puts_elsewhere = words.next();
  rows.bytes_elsewhere = words.next();
  for (std::uint64_t i = 0; i < edge_count; ++i) rows.edges.push_back(unpack_edge(words));
  rows.segments.resize(segments);
  for (auto& counters : rows.segments) words.next(counters);
  if (words.left() != 0) throw CommunicationError("a rank's packed ledger is too long");
  return rows;
}

template <std::size_t n>
void write_counters(std::ostream& out, const std::array<std::uint64_t, n>& counters) {
  for (const std::uint64_t counter : counters) out << ',' << counter;
}

/// The last column, where the run has a name.
std::string heading(const std::string& run_id) { return run_id.empty() ? "" : ",run_id"; }
std::string field(const std::string& run_id) { return run_id.empty() ? "" : "," + run_id; }

std::string edges_csv(std::span<const RankRows> ranks, const std::string& run_id) {
  std::ostringstream out;
  out.precision(17);
  out << "sender,receiver,weight,messages,deferred,packets,puts,payload_bytes,index_bytes,header_bytes,"
         "control_bytes,bytes_sent"
      << heading(run_id) << '\n';
  for (const RankRows& rank : ranks) {
    for (const EdgeRow& edge : rank.edges) {
      const auto& c = edge.counters;
      out << rank.rank << ',' << edge.neighbour << ',' << edge.weight;
      write_counters(out, c);
      out << ',' << c[4] + c[5] + c[6] + c[7] << field(run_id) << '\n';
    }
  }
  return out.str();
}

std::string shape_text(const Segment& segment) {
  std::string text;
  for (const std::int64_t extent : segment.shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::string segments_csv(std::span<const RankRows> ranks, const Layout& layout, const std::string& run_id) {
  std::ostringstream out;
  out << "segment,name,shape,length,events,messages,payload_bytes,index_bytes,value_events" << heading(run_id) << '\n';
  for (std::size_t s = 0; s < layout.count(); ++s) {
    SegmentRow sum{};
    for (const RankRows& rank : ranks) {
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += rank.segments[s][c];
    }
    const Segment& segment = layout.segments()[s];
    out << s << ',' << csv_field(segment.name) << ',' << shape_text(segment) << ',' << segment.length;
    write_counters(out, sum);
    out << field(run_id) << '\n';
  }
  return out.str();
}

double age_s(const EdgeRow& edge, double q) {
  return edge.samples == 0 ? 0.0 : AgeBins::middle_s(quantile_bin(edge.by_time, q));
}

std::string staleness_csv(std::span<const RankRows> ranks, const std::string& run_id) {
  std::ostringstream out;
  out << "rank,neighbour,samples,mean_iterations,maximum_iterations,median_iterations,p99_iterations,median_s,p99_s,"
         "maximum_s";
  for (std::size_t age = 0; age + 1 < Staleness::bins; ++age) out << ",samples_" << age;
  out << ",samples_" << Staleness::bins - 1 << "_or_more" << heading(run_id) << '\n';
  for (const RankRows& rank : ranks) {
    for (const EdgeRow& edge : rank.edges) {
      const double mean = edge.samples == 0 ? 0.0 : static_cast<double>(edge.sum) / static_cast<double>(edge.samples);
      out << rank.rank << ',' << edge.neighbour << ',' << edge.samples << ',' << mean << ',' << edge.maximum << ','
          << quantile_bin(edge.histogram, 0.5) << ',' << quantile_bin(edge.histogram, 0.99) << ',' << age_s(edge, 0.5)
          << ',' << age_s(edge, 0.99) << ',' << 1e-9 * static_cast<double>(edge.longest_ns);
      write_counters(out, edge.histogram);
      out << field(run_id) << '\n';
    }
  }
  return out.str();
}

LedgerTotals totals_of(std::span<const RankRows> ranks) {
  LedgerTotals totals;
  for (const RankRows& rank : ranks) {
    for (const EdgeRow& edge : rank.edges) {
      const auto& c = edge.counters;
      totals.messages += c[0];
      totals.deferred += c[1];
      totals.packets += c[2];
      totals.puts += c[3];
      totals.payload_bytes += c[4];
      totals.index_bytes += c[5];
      totals.header_bytes += c[6];
      totals.control_bytes += c[7];
    }
    totals.puts += rank.puts_elsewhere;
    totals.control_bytes += rank.bytes_elsewhere;
    for (const auto& segment : rank.segments) totals.events += segment[0], totals.value_events += segment[4];
  }
  return totals;
}

}  // namespace

std::vector<std::byte> pack_ledger(const Ledger& ledger, const Neighbourhood& neighbourhood) {
  std::vector<std::size_t> edges;
  for (std::size_t i = 0; i < ledger.neighbours(); ++i)
    if (was_used(ledger, i)) edges.push_back(i);
  std::vector<std::uint64_t> words{static_cast<std::uint64_t>(neighbourhood.rank), edges.size(), ledger.segments(),
                                   ledger.puts_elsewhere(), ledger.bytes_elsewhere()};
  for (const std::size_t i : edges) pack_edge(ledger, neighbourhood, i, words);
  for (SegmentId s = 0; s < ledger.segments(); ++s) {
    const SegmentCounters& segment = ledger.segment(s);
    for (const Counter* counter :
         {&segment.events, &segment.messages, &segment.payload_bytes, &segment.index_bytes, &segment.value_events}) {
      words.push_back(counter->value());
    }
  }
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

LedgerTotals write_communication(const std::filesystem::path& directory, std::span<const std::vector<std::byte>> packed,
                                 const Layout& layout, const std::string& run_id,
                                 std::vector<std::string>* not_written) {
  std::vector<RankRows> ranks;
  for (const std::vector<std::byte>& ledger : packed) ranks.push_back(unpack_ledger(ledger, layout.count()));
  const auto write = [&](const char* name, const std::string& table) {
    if (not_written == nullptr)
      write_file(directory / name, table);
    else
      write_if_possible(*not_written, [&] { write_file(directory / name, table); });
  };
  write("communication.csv", edges_csv(ranks, run_id));
  write("segments.csv", segments_csv(ranks, layout, run_id));
  write("staleness.csv", staleness_csv(ranks, run_id));
  return totals_of(ranks);
}

}  // namespace hearsay
