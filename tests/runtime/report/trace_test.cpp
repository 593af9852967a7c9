// trace.rankNNNN.json as Perfetto and merge_trace see it.
#include "runtime/report/trace.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <string>

#include "base/error.hpp"
#include "runtime/report/json.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace trace_test {

using namespace hearsay;
using namespace std::chrono_literals;
using hearsay::test::TemporaryFolder;

namespace {

const TimePoint origin{};

Json written(const Trace& trace, int rank) {
  const TemporaryFolder folder;
  trace.write(folder.path());
  return Json::parse(test::contents(folder / ("trace.rank000" + std::to_string(rank) + ".json")));
}

std::vector<Json> events_of(const Json& trace, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == kind) found.push_back(event);
  return found;
}

}  // namespace

TEST_CASE("a phase is a span in microseconds on the thread that spends it") {
  Trace trace({.rank = 1, .ranks = 4, .neighbours = {}, .host = ""}, 0, origin);
  Ledger ledger(0, 3);
  ledger.watched_by(&trace);
  trace.iteration(7);
  ledger.spend({.phase = Phase::compute, .from = origin + 5us, .to = origin + 2ms});
  ledger.spend({.phase = Phase::communicate, .from = origin + 1ms, .to = origin + 3ms, .segments = SegmentRange{1, 2}});
  ledger.spend({.phase = Phase::communicate_encode, .from = origin + 1ms, .to = origin + 2ms});
  const auto spans = events_of(written(trace, 1), "X");
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].at("name") == "compute");
  CHECK(spans[0].at("ts") == 5.0);
  CHECK(spans[0].at("dur") == 1995.0);
  CHECK(spans[0].at("pid") == 1);
  CHECK(spans[0].at("tid") == 0);
  CHECK(spans[0].at("args").at("iteration") == 7);
  CHECK(spans[1].at("tid") == 1);
  CHECK(spans[1].at("args").at("segments") == Json({1, 2}));
  CHECK(spans[2].at("tid") == 1);
  CHECK(ledger.seconds(Phase::communicate) == 2e-3);
  CHECK(ledger.seconds(Phase::communicate_encode) == 1e-3);
}

TEST_CASE("a trace says whose clock it is by, and what that clock read at its zero") {
  const Trace trace({.rank = 2, .ranks = 4, .neighbours = {}, .host = "here"}, 0, 1500us);
  const Json other = written(trace, 2).at("otherData");
  CHECK(other.at("rank") == 2);
  CHECK(other.at("ranks") == 4);
  CHECK(other.at("host") == "here");
  CHECK(other.at("origin_us") == 1500.0);
}

TEST_CASE("every packet taken is the end of the arrow of the put that brought it") {
  Trace from({.rank = 0, .ranks = 3, .neighbours = {1, 2}, .host = ""}, 0, origin);
  Trace to({.rank = 2, .ranks = 3, .neighbours = {0}, .host = ""}, 0, origin);
  from.packets_sent(1, 2, origin, origin + 10us);
  from.packets_sent(0, 1, origin, origin + 10us);
  from.packets_sent(1, 1, origin + 20us, origin + 30us);
  for (int i = 0; i < 3; ++i) to.packet_taken(0, origin + 40us);
  std::set<std::string> starts, ends;
  for (const Json& event : events_of(written(from, 0), "s")) CHECK(starts.insert(event.at("id")).second);
  for (const Json& event : events_of(written(to, 2), "f")) CHECK(ends.insert(event.at("id")).second);
  CHECK(starts.size() == 4);
  CHECK(ends.size() == 3);
  for (const std::string& id : ends) CHECK(starts.contains(id));
}

TEST_CASE("after the iterations asked for nothing is kept") {
  Trace trace({.rank = 0, .ranks = 1, .neighbours = {1}, .host = ""}, 2, origin);
  for (Iteration k = 0; k < 5; ++k) {
    trace.iteration(k);
    trace.phase({.phase = Phase::mix, .from = origin, .to = origin + 1us});
    trace.gradient(0, origin);
    trace.packets_sent(0, 1, origin, origin + 1us);
    trace.packet_taken(0, origin);
  }
  const Json json = written(trace, 0);
  for (const char* kind : {"i", "s", "f"}) CHECK(events_of(json, kind).size() == 2);
  CHECK(events_of(json, "X").size() == 4);  // phases and puts
}

TEST_CASE("a trace that cannot be written is a DataError that names the file") {
  const Trace trace({.rank = 0, .ranks = 1, .neighbours = {}, .host = ""}, 0, origin);
  CHECK_THROWS_WITH_AS(trace.write("/nowhere"), doctest::Contains("/nowhere/trace.rank0000.json"), DataError);
}

}  // namespace trace_test
