#include "apps/hearsay/views/bench_report.hpp"

#include <utility>
#include <vector>

#include "apps/shared/text.hpp"
#include "runtime/report/json.hpp"

namespace hearsay {
namespace {

constexpr std::size_t width = 98;

double of_prediction(const CollectiveTiming& t) { return t.median_s / t.predicted_s; }

std::string ratio_text(double ratio) { return fixed(ratio, ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0); }

std::string note(const std::string& text) { return "note: " + wrapped(text, width - 6, 6) + "\n"; }

/// What a reader must know who takes the predictions for promises.
std::string notes(const CollectivesBench& bench) {
  std::string text = note(
      "predicted: what the α-β model gives for the messages of the busiest rank (for `library`, whose algorithm is "
      "MPI's own affair, for a ring). It knows no decoding and merging, no cores that ranks share and no common memory "
      "bus. sent: bytes of a call by the rank that sends most (for `library` what MPI was given).");
  const int machines = bench.collectives.machines;
  const auto ranks = static_cast<unsigned>((bench.collectives.ranks + machines - 1) / machines);
  if (bench.machine.cores != 0 && ranks > bench.machine.cores)
    text += note(counted(ranks, "rank") + " a machine share " + counted(bench.machine.cores, "core") +
                 ": expect times well above the predicted ones.");
  return text;
}

std::string model_text(const CollectivesReport& report) {
  std::string text = "α  " + duration(report.model.alpha_s) + " a message, β  " +
                     significant(1e9 * report.model.beta_s, 3) + " ns a word of 4 bytes (" +
                     byte_count(bytes_per_word / report.model.beta_s) + "/s)\n";
  std::string trips;
  for (const PingPong& trip : report.ping_pong) {
    trips += (trips.empty() ? "" : ", ") + byte_count(static_cast<double>(trip.bytes)) + " " + duration(trip.one_way_s);
  }
  return text + "   " +
         wrapped("half a round trip between ranks 0 and 1, median: " + trips +
                     "; α is the first, β the least-squares fit of relative errors to the others",
                 width - 3, 3) +
         "\n";
}

std::vector<std::string> row(const CollectiveTiming& t) {
  return {std::string(t.algorithm),
          t.density ? significant(*t.density, 4) : "dense",
          t.density ? with_separators(t.k) : "",
          std::to_string(t.calls),
          duration(t.median_s),
          duration(t.p99_s),
          duration(t.predicted_s),
          ratio_text(of_prediction(t)),
          byte_count(static_cast<double>(t.bytes_sent))};
}

/// One table for each length.
std::string timings_text(const std::vector<CollectiveTiming>& timings) {
  std::string text;
  for (auto t = timings.begin(); t != timings.end();) {
    const std::size_t values = t->values;
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "density", "entries", "calls", "median", "p99", "predicted", "ratio", "sent"}};
    for (; t != timings.end() && t->values == values; ++t) rows.push_back(row(*t));
    text += counted(static_cast<std::int64_t>(values), "value") + "\n" + aligned_table(rows) + "\n";
  }
  return text;
}

std::string passes_text(const MergeTiming& merge, const SelectionTiming& selection) {
  return "merge      two lists of " + with_separators(merge.entries) + " entries, cut to " +
         with_separators(merge.entries) + ": " + duration(merge.median_s) + " (target: at most " +
         duration(MergeTiming::target_s) + ")\n" + "selection  r += g, top-k of " + with_separators(selection.values) +
         " at density " + significant(selection.density, 4) + ", taken out: " + duration(selection.selection_s) +
         "\n           " + ratio_text(selection.ratio) + " times r += g alone, " + duration(selection.addition_s) +
         " (target: at most " + fixed(SelectionTiming::target_ratio, 1) + ")\n";
}

Json timing_json(const CollectiveTiming& t) {
  return {{"algorithm", t.algorithm},
          {"values", t.values},
          {"density", json_number(t.density)},
          {"entries", t.density ? Json(t.k) : Json(nullptr)},
          {"calls", t.calls},
          {"median_s", json_number(t.median_s)},
          {"p99_s", json_number(t.p99_s)},
          {"predicted_s", json_number(t.predicted_s)},
          {"measured_to_predicted", json_number(of_prediction(t))},
          {"sent_bytes", t.bytes_sent}};
}

}  // namespace

std::string bench_text(const CollectivesBench& bench) {
  const CollectivesReport& report = bench.collectives;
  const std::string cores =
      bench.machine.cores == 0 ? "an unknown number of cores" : counted(bench.machine.cores, "core");
  return counted(report.ranks, "rank") + " on " + counted(report.machines, "machine") + " of " + cores + ", " +
         bench.machine.mpi.substr(0, bench.machine.mpi.find(',')) + "\n" + model_text(report) + "\n" +
         timings_text(report.timings) + passes_text(bench.merge, bench.selection) + "\n" + notes(bench);
}

std::string bench_json(const CollectivesBench& bench) {
  const CollectivesReport& report = bench.collectives;
  Json trips = Json::array(), timings = Json::array();
  for (const PingPong& trip : report.ping_pong)
    trips.push_back({{"bytes", trip.bytes}, {"one_way_s", json_number(trip.one_way_s)}});
  for (const CollectiveTiming& timing : report.timings) timings.push_back(timing_json(timing));
  const Json json{{"schema_version", 1},
                  {"hearsay", bench.machine.hearsay},
                  {"mpi", bench.machine.mpi},
                  {"ranks", report.ranks},
                  {"machines", report.machines},
                  {"cores", bench.machine.cores},
                  {"alpha_s", json_number(report.model.alpha_s)},
                  {"beta_s_per_word", json_number(report.model.beta_s)},
                  {"ping_pong", std::move(trips)},
                  {"collectives", std::move(timings)},
                  {"merge",
                   {{"entries", bench.merge.entries},
                    {"repeats", bench.merge.repeats},
                    {"median_s", json_number(bench.merge.median_s)},
                    {"target_s", MergeTiming::target_s}}},
                  {"selection",
                   {{"values", bench.selection.values},
                    {"density", bench.selection.density},
                    {"repeats", bench.selection.repeats},
                    {"addition_s", json_number(bench.selection.addition_s)},
                    {"selection_s", json_number(bench.selection.selection_s)},
                    {"ratio", json_number(bench.selection.ratio)},
                    {"target_ratio", SelectionTiming::target_ratio}}}};
  return json.dump(2) + "\n";
}

}  // namespace hearsay
