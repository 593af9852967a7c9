#include "runtime/report/ranks.hpp"

#include <cstring>
#include <sstream>

#include "base/error.hpp"

namespace hearsay {

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
    out << r << ',' << rank.iterations << ',' << share << ',' << rank.wall_s << ',' << rank.idle_s;
    for (const double seconds : rank.phase_s) out << ',' << seconds;
    out << (run_id.empty() ? "" : "," + run_id) << '\n';
  }
  return out.str();
}

}  // namespace hearsay
