// ranks.csv: what every rank did of the job.
#include "runtime/report/totals.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace totals_test {

using namespace hearsay;

TEST_CASE("a rank's account comes back as it was, and nothing else is taken for one") {
  RankWork work{.iterations = 7, .wall_s = 1.5, .idle_s = 0.25};
  for (std::size_t phase = 0; phase < work.phase_s.size(); ++phase) work.phase_s[phase] = static_cast<double>(phase);
  const RankWork back = unpacked_work(packed(work));
  CHECK(back.iterations == 7);
  CHECK(back.wall_s == 1.5);
  CHECK(back.idle_s == 0.25);
  CHECK(back.phase_s == work.phase_s);
  const std::vector<std::byte> short_one(8);
  CHECK_THROWS_AS(unpacked_work(short_one), CommunicationError);
}

TEST_CASE("a rank's share is its part of all iterations") {
  const std::vector<RankWork> ranks{{.iterations = 30, .wall_s = 2.0},
                                    {.iterations = 10, .wall_s = 2.0, .idle_s = 0.5}};
  const std::string table = ranks_csv(ranks, "hearsay-0");
  CHECK(table.starts_with("rank,iterations,share,wall_s,idle_s,compute_s,"));
  CHECK(table.find("\n0,30,0.75,2,0,") != std::string::npos);
  CHECK(table.find("\n1,10,0.25,2,0.5,") != std::string::npos);
  CHECK(table.ends_with(",hearsay-0\n"));
  const std::vector<RankWork> nothing_done(2);
  CHECK(ranks_csv(nothing_done, "").find("\n1,0,0,0,0,") != std::string::npos);
}

}  // namespace totals_test
