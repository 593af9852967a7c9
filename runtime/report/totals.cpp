#include "runtime/report/totals.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include "base/error.hpp"

namespace hearsay {
namespace {

void add_shares(Summary& summary, Communicator& communicator, const std::vector<Share>& shares) {
  std::vector<double> sums;
  for (const Share& share : shares) sums.insert(sums.end(), {share.part, share.whole});
  if (sums.empty()) return;
  communicator.sum(sums);
  for (std::size_t i = 0; i < shares.size(); ++i)
    summary.shares[std::string(shares[i].name)] = Share{{}, sums[2 * i], sums[2 * i + 1]}.fraction();
}

/// Over the edges of a rank: samples by age in iterations, then by age in seconds, then the sum of all iterations.
std::vector<double> ages(const Ledger& ledger) {
  std::vector<double> sums(Staleness::bins + AgeBins::count + 1);
  const auto add = [&](std::size_t at, const Counter& counter) { sums[at] += static_cast<double>(counter.value()); };
  for (std::size_t edge = 0; edge < ledger.neighbours(); ++edge) {
    const Staleness& staleness = ledger.staleness(edge);
    for (std::size_t bin = 0; bin < Staleness::bins; ++bin) add(bin, staleness.histogram[bin]);
    for (std::size_t bin = 0; bin < AgeBins::count; ++bin) add(Staleness::bins + bin, staleness.by_time[bin]);
    add(sums.size() - 1, staleness.sum);
  }
  return sums;
}

void add_staleness(Summary& summary, Communicator& communicator, const Ledger& ledger) {
  std::vector<double> sums = ages(ledger), largest{static_cast<double>(ledger.staleness_max())};
  communicator.sum(sums);
  communicator.maximum(largest);
  const std::vector<std::uint64_t> samples(sums.begin(), sums.end() - 1);
  const auto by_iterations = std::span(samples).first(Staleness::bins);
  const auto by_time = std::span(samples).subspan(Staleness::bins);
  const auto all = std::accumulate(by_iterations.begin(), by_iterations.end(), std::uint64_t{0});
  if (all == 0) return;
  summary.staleness_mean = sums.back() / static_cast<double>(all);
  summary.staleness_max = largest[0];
  summary.staleness_p99 = static_cast<double>(quantile_bin(by_iterations, 0.99));
  summary.staleness_median_s = AgeBins::middle_s(quantile_bin(by_time, 0.5));
  summary.staleness_p99_s = AgeBins::middle_s(quantile_bin(by_time, 0.99));
}

/// Every rank's, on rank 0.
std::vector<RankWork> gathered_work(Communicator& communicator, const Ledger& ledger, const RankResult& result) {
  RankWork own{.rank = result.rank,
               .iterations = result.iterations,
               .wall_s = result.times.wall_s,
               .idle_s = result.times.idle_s};
  for (std::size_t phase = 0; phase < phase_names.size(); ++phase)
    own.phase_s[phase] = ledger.seconds(static_cast<Phase>(phase));
  std::vector<RankWork> work;
  for (const auto& bytes : communicator.gather(packed(own))) work.push_back(unpacked_work(bytes));
  return work;
}

void add_work(Summary& summary, const std::vector<RankWork>& work) {
  const auto by_iterations = [](const RankWork& a, const RankWork& b) { return a.iterations < b.iterations; };
  const auto [fewest, most] = std::ranges::minmax_element(work, by_iterations);
  summary.rank_iterations = {fewest->iterations, most->iterations};
  for (const RankWork& rank : work) summary.idle_s += rank.idle_s / static_cast<double>(work.size());
}

}  // namespace

static_assert(std::is_trivially_copyable_v<RankWork>);

std::vector<std::byte> packed(const RankWork& work) {
  const auto bytes = std::as_bytes(std::span(&work, 1));
  return {bytes.begin(), bytes.end()};
}

RankWork unpacked_work(std::span<const std::byte> bytes) {
  RankWork work;
  if (bytes.size() != sizeof work) throw CommunicationError("a rank's account of its work has another length");
  std::memcpy(&work, bytes.data(), sizeof work);
  return work;
}

std::string ranks_csv(std::span<const RankWork> ranks, const std::string& run_id) {
  std::int64_t all = 0;
  for (const RankWork& rank : ranks) all += rank.iterations;
  std::ostringstream out;
  out << "rank,iterations,share,wall_s,idle_s";
  for (const char* phase : phase_names) out << ',' << phase << "_s";
  out << (run_id.empty() ? "" : ",run_id") << '\n';
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankWork& rank = ranks[r];
    const double share = all == 0 ? 0.0 : static_cast<double>(rank.iterations) / static_cast<double>(all);
    out << (rank.rank < 0 ? static_cast<std::int64_t>(r) : rank.rank) << ',' << rank.iterations << ',' << share << ','
        << rank.wall_s << ',' << rank.idle_s;
    for (const double seconds : rank.phase_s) out << ',' << seconds;
    out << (run_id.empty() ? "" : "," + run_id) << '\n';
  }
  return out.str();
}

void count_possible(Summary& summary, bool neighbours) {
  const auto iterations = static_cast<std::uint64_t>(summary.iterations);
  const auto ranks = static_cast<std::uint64_t>(summary.ranks);
  summary.messages_possible = neighbours ? summary.segments * summary.edges * iterations : 0;
  summary.dense_payload_bytes =
      sizeof(float) * summary.parameters * iterations * (neighbours ? summary.edges : 2 * (ranks - 1));
}

void complete_summary(Summary& summary, Communicator& communicator, const RankAccount& account,
                      const RankResult& result) {
  const RunTimes& times = result.times;
  const std::uint64_t replica_hash = result.replica_hash;
  add_shares(summary, communicator, result.shares);
  add_staleness(summary, communicator, account.ledger);
  std::vector<double> phases;
  for (std::size_t phase = 0; phase < phase_names.size(); ++phase)
    phases.push_back(account.ledger.seconds(static_cast<Phase>(phase)) / communicator.size());
  communicator.sum(phases);
  summary.phase_seconds = phases;

  std::vector<double> slowest{times.wall_s, times.wall_s - times.evaluate_s};
  communicator.maximum(slowest);
  summary.wall_time_s = slowest[0];
  summary.time_per_iteration_s = summary.iterations > 0 ? slowest[1] / static_cast<double>(summary.iterations) : 0.0;

  const auto hashes = communicator.gather(std::as_bytes(std::span(&replica_hash, 1)));
  const auto ledgers = communicator.gather(pack_ledger(account.ledger, account.neighbourhood));
  const auto work = gathered_work(communicator, account.ledger, result);
  const auto not_written = gather_texts(communicator, account.not_written.packed());
  if (communicator.rank() != 0) return;
  Unwritten of_all;
  for (const std::string& text : not_written) of_all.add(Unwritten::unpacked(text));
  summary.not_written = of_all.lines();
  add_work(summary, work);
  for (const auto& bytes : hashes) std::memcpy(&summary.replica_hashes.emplace_back(), bytes.data(), bytes.size());
  summary.totals =
      write_communication(account.directory, ledgers, account.layout, summary.run_id, &summary.not_written);
  write_if_possible(summary.not_written,
                    [&] { write_file(account.directory / "ranks.csv", ranks_csv(work, summary.run_id)); });
}

std::vector<std::string> gather_texts(Communicator& communicator, const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& bytes : communicator.gather(std::as_bytes(std::span(text))))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

std::string ranks_that_differ(Communicator& communicator, const std::string& text) {
  const std::vector<std::string> texts = gather_texts(communicator, text);
  std::string ranks;
  for (std::size_t rank = 1; rank < texts.size(); ++rank)
    if (texts[rank] != texts[0]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

}  // namespace hearsay
