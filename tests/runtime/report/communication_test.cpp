// Ledgers as tables: what the ledgers counted is what the files say, edge by edge and in sum.
#include <doctest/doctest.h>

#include <map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/report/report.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace communication_test {

using namespace hearsay;
using hearsay::test::TemporaryFolder;

namespace {

using Row = std::map<std::string, std::string>;

/// The rows of a CSV file without quoted fields, by column name.
std::vector<Row> rows_of(const std::filesystem::path& file) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    return fields;
  };
  std::istringstream lines(test::contents(file));
  std::string line;
  std::getline(lines, line);
  const auto names = split(line);
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    const auto fields = split(line);
    REQUIRE(fields.size() == names.size());
    Row row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

std::uint64_t number(const Row& row, const std::string& column) { return std::stoull(row.at(column)); }

std::uint64_t sum(const std::vector<Row>& rows, const std::string& column) {
  std::uint64_t total = 0;
  for (const Row& row : rows) total += number(row, column);
  return total;
}

Layout two_segments() {
  Layout layout;
  layout.append("conv.weight", {10, 1, 3, 3});
  layout.append("conv.bias", {10});
  return layout;
}

Neighbourhood in_ring(int rank, int ranks) {
  Neighbourhood row{.rank = rank,
                    .self_weight = 0.5,
                    .neighbours = {(rank + ranks - 1) % ranks, (rank + 1) % ranks},
                    .weights = {0.25, 0.25}};
  if (row.neighbours[0] > row.neighbours[1]) std::swap(row.neighbours[0], row.neighbours[1]);
  return row;
}

/// A ledger of one rank after some arbitrary traffic.
void spend_somehow(Ledger& ledger, Random& random) {
  for (int i = 0; i < 20; ++i) {
    const std::size_t edge = random.below(2);
    const auto segment = static_cast<SegmentId>(random.below(2));
    OutgoingPacket packet;
    packet.records.push_back({segment, random.below(1000), random.below(1000)});
    packet.bytes.resize(packet.records[0].payload_bytes + packet.records[0].index_bytes + 48);
    ledger.event(segment);
    ledger.packet_put(edge, packet);
    ledger.header_put(edge, 32);
    ledger.control_put(edge, 8);
    ledger.defer(edge, random.below(3));
    ledger.mixed(edge, {.iterations = static_cast<std::int64_t>(random.below(100)), .time = {}});
  }
}

}  // namespace

/// A clock on which a second passes between two readings.
std::chrono::nanoseconds ticking() {
  static int readings = 0;
  return std::chrono::seconds(readings++);
}

TEST_CASE("a ledger's times are readings of its clock") {
  Ledger ledger(0, 0, ticking);
  { const PhaseTimer timer(ledger, Phase::mix); }
  { const PhaseTimer timer(ledger, Phase::mix); }
  CHECK(ledger.seconds(Phase::mix) == 2.0);
  CHECK(ledger.seconds(Phase::wait) == 0.0);
}

TEST_CASE("the tables of four random ledgers add up to the ledgers' own totals") {
  constexpr int ranks = 4;
  const TemporaryFolder folder;
  Random random(11);
  std::vector<std::vector<std::byte>> packed;
  LedgerTotals expected;
  std::uint64_t samples = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    Ledger ledger(2, 2);
    spend_somehow(ledger, random);
    packed.push_back(pack_ledger(ledger, in_ring(rank, ranks)));
    const LedgerTotals own = ledger.totals();
    expected.events += own.events;
    expected.messages += own.messages;
    expected.deferred += own.deferred;
    expected.packets += own.packets;
    expected.puts += own.puts;
    expected.payload_bytes += own.payload_bytes;
    expected.index_bytes += own.index_bytes;
    expected.header_bytes += own.header_bytes;
    expected.control_bytes += own.control_bytes;
    samples += 20;
  }
  const LedgerTotals totals = write_communication(folder.path(), packed, two_segments());
  const auto edges = rows_of(folder / "communication.csv");
  const auto segments = rows_of(folder / "segments.csv");
  const auto staleness = rows_of(folder / "staleness.csv");
  REQUIRE(edges.size() == 8);
  REQUIRE(segments.size() == 2);
  REQUIRE(staleness.size() == 8);

  CHECK(totals.bytes() == expected.bytes());
  CHECK(totals.events == expected.events);
  CHECK(sum(segments, "events") == expected.events);
  CHECK(sum(segments, "messages") == expected.messages);
  CHECK(sum(segments, "payload_bytes") == expected.payload_bytes);
  CHECK(sum(segments, "index_bytes") == expected.index_bytes);
  CHECK(sum(edges, "messages") == expected.messages);
  CHECK(sum(edges, "deferred") == expected.deferred);
  CHECK(sum(edges, "packets") == expected.packets);
  CHECK(sum(edges, "puts") == expected.puts);
  CHECK(sum(edges, "payload_bytes") == expected.payload_bytes);
  CHECK(sum(edges, "index_bytes") == expected.index_bytes);
  CHECK(sum(edges, "header_bytes") == expected.header_bytes);
  CHECK(sum(edges, "control_bytes") == expected.control_bytes);
  CHECK(sum(edges, "bytes_sent") == expected.bytes());
  CHECK(sum(staleness, "samples") == samples);
}

TEST_CASE("each edge keeps its own counters, neighbours and weight; staleness counts ages up to 62 one by one") {
  const TemporaryFolder folder;
  Ledger ledger(2, 2);
  ledger.control_put(1, 8);
  ledger.mixed(0, {.iterations = 0, .time = std::chrono::milliseconds(1)});
  ledger.mixed(0, {.iterations = 62, .time = std::chrono::milliseconds(10)});
  ledger.mixed(0, {.iterations = 63, .time = std::chrono::milliseconds(11)});
  ledger.mixed(0, {.iterations = 75, .time = std::chrono::seconds(2)});
  const std::vector<std::vector<std::byte>> packed{pack_ledger(ledger, in_ring(0, 5))};
  write_communication(folder.path(), packed, two_segments());
  const auto edges = rows_of(folder / "communication.csv");
  REQUIRE(edges.size() == 2);
  CHECK(edges[0].at("sender") == "0");
  CHECK(edges[0].at("receiver") == "1");
  CHECK(edges[1].at("receiver") == "4");
  CHECK(edges[0].at("weight") == "0.25");
  CHECK(edges[0].at("control_bytes") == "0");
  CHECK(edges[1].at("control_bytes") == "8");
  const auto staleness = rows_of(folder / "staleness.csv");
  CHECK(staleness[0].at("samples") == "4");
  CHECK(staleness[0].at("mean_iterations") == "50");
  CHECK(staleness[0].at("maximum_iterations") == "75");
  CHECK(staleness[0].at("median_iterations") == "62");
  CHECK(staleness[0].at("p99_iterations") == "63");  // or more
  CHECK(std::stod(staleness[0].at("median_s")) == doctest::Approx(0.01).epsilon(0.1));
  CHECK(std::stod(staleness[0].at("p99_s")) == doctest::Approx(2.0).epsilon(0.1));
  CHECK(staleness[0].at("maximum_s") == "2");
  CHECK(staleness[0].at("samples_0") == "1");
  CHECK(staleness[0].at("samples_62") == "1");
  CHECK(staleness[0].at("samples_63_or_more") == "2");
  CHECK(staleness[1].at("samples") == "0");
  CHECK(staleness[1].at("mean_iterations") == "0");
  const auto segments = rows_of(folder / "segments.csv");
  CHECK(segments[0].at("name") == "conv.weight");
  CHECK(segments[0].at("shape") == "10x1x3x3");
  CHECK(segments[0].at("length") == "90");
}

TEST_CASE("an edge that nothing happened on has no line: on the global path most have none") {
  const TemporaryFolder folder;
  Ledger ledger(1000, 2);
  ledger.message_sent(17, {.payload_bytes = 40, .index_bytes = 0}, 64);
  Neighbourhood everybody{.rank = 1000, .self_weight = 0.001, .neighbours = {}, .weights = {}};
  for (int j = 0; j < 1000; ++j) everybody.neighbours.push_back(j), everybody.weights.push_back(0.001);
  const std::vector<std::vector<std::byte>> packed{pack_ledger(ledger, everybody)};
  CHECK(packed[0].size() < 2 * 1000);  // one edge's counters, not 1000 of them
  CHECK(write_communication(folder.path(), packed, two_segments()).bytes() == 64);
  const auto edges = rows_of(folder / "communication.csv");
  REQUIRE(edges.size() == 1);
  CHECK(edges[0].at("receiver") == "17");
}

TEST_CASE("a packed ledger that does not fit the layout is an error, not a table") {
  const TemporaryFolder folder;
  const Ledger ledger(2, 2);
  std::vector<std::vector<std::byte>> packed{pack_ledger(ledger, in_ring(0, 3))};
  Layout other = two_segments();
  other.append("more", {1});
  CHECK_THROWS_AS(write_communication(folder.path(), packed, other), CommunicationError);
  packed[0].resize(packed[0].size() - 8);
  CHECK_THROWS_AS(write_communication(folder.path(), packed, two_segments()), CommunicationError);
  packed[0].resize(packed[0].size() + 16);
  CHECK_THROWS_AS(write_communication(folder.path(), packed, two_segments()), CommunicationError);
  CHECK(!std::filesystem::exists(folder / "communication.csv"));
}

TEST_CASE("the run's name is the last column of every table") {
  const TemporaryFolder folder;
  Ledger ledger(2, 2);
  ledger.control_put(0, 8);
  const std::vector<std::vector<std::byte>> packed{pack_ledger(ledger, in_ring(1, 3))};
  write_communication(folder.path(), packed, two_segments(), "hearsay-0123456789abcdef");
  for (const char* name : {"communication.csv", "segments.csv", "staleness.csv"})
    for (const auto& row : rows_of(folder / name)) CHECK(row.at("run_id") == "hearsay-0123456789abcdef");
  CHECK(rows_of(folder / "segments.csv").size() == 2);
  CHECK(rows_of(folder / "communication.csv").size() == 1);
}

TEST_CASE("one rank without neighbours: headings only, and no division by nothing") {
  const TemporaryFolder folder;
  const Ledger ledger(0, 2);
  const std::vector<std::vector<std::byte>> packed{pack_ledger(ledger, Neighbourhood{})};
  CHECK(write_communication(folder.path(), packed, two_segments()).bytes() == 0);
  CHECK(rows_of(folder / "communication.csv").empty());
  CHECK(rows_of(folder / "staleness.csv").empty());
  CHECK(rows_of(folder / "segments.csv").size() == 2);
}

}  // namespace communication_test
