// Where the processes of a launcher meet, in environments that are maps.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/job/meeting_place.hpp"

namespace hearsay::meeting_place_test {
namespace {

std::optional<MeetingPlace> place_of(const Variables& variables) {
  const auto launch = launch_of({variables});
  return launch ? meeting_place(*launch, variables) : std::nullopt;
}

const Variables torchrun{{"RANK", "1"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "10.0.0.1"},
                         {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST_CASE("processes of one host have a folder, those of several need a name for it") {
  const auto several = place_of(torchrun);
  REQUIRE(several);
  CHECK(several->rank == 1);
  CHECK(several->ranks == 4);
  CHECK_FALSE(several->folder);
  for (const auto& [name, value] : {std::pair{"MASTER_ADDR", "127.0.0.1"},
                                    {"MASTER_ADDR", "localhost"},
                                    {"MASTER_ADDR", "::1"},
                                    {"LOCAL_WORLD_SIZE", "4"}})
    CHECK(place_of(with(torchrun, name, value))->folder);
  const auto named = place_of(with(torchrun, "HEARSAY_RENDEZVOUS", "/shared/runs"));
  CHECK(named->folder == "/shared/runs");
  CHECK(named->folder_is_named);
  const Variables slurm{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}};
  CHECK_FALSE(place_of(slurm)->folder);
  CHECK_FALSE(place_of(with(slurm, "SLURM_STEP_NUM_NODES", "2"))->folder);
  CHECK(place_of(with(slurm, "SLURM_STEP_NUM_NODES", "1"))->folder);
}

TEST_CASE("jobs that differ in what their launcher says meet apart, and a name is one that a folder can have") {
  const std::string job = place_of(torchrun)->job;
  for (const char* name : {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    CHECK(place_of(with(torchrun, name, "7"))->job != job);
  CHECK(place_of(with(torchrun, "HEARSAY_JOB", "mine"))->job == "mine");
  const std::string odd = place_of(with(torchrun, "TORCHELASTIC_RUN_ID", "../a b\n" + std::string(100, 'x')))->job;
  CHECK(odd.size() <= 64);
  CHECK(odd.find_first_of("/ \n") == std::string::npos);
}

TEST_CASE("a launcher that does not say how many processes there are has no place") {
  CHECK_FALSE(place_of({{"JOB_COMPLETION_INDEX", "0"}}));
  CHECK_FALSE(place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

TEST_CASE("Hearsay's own variables come in pairs that fit") {
  const auto pair = [](const std::string& rank, const std::string& ranks) {
    Variables variables;
    if (!rank.empty()) variables["HEARSAY_RANK"] = rank;
    if (!ranks.empty()) variables["HEARSAY_RANKS"] = ranks;
    return variables;
  };
  for (const auto& [rank, ranks] : std::vector<std::pair<std::string, std::string>>{{"", ""}, {"0", "1"}, {"3", "4"}})
    CHECK_NOTHROW(place_of(pair(rank, ranks)));
  CHECK(place_of(pair("0", "1"))->ranks == 1);
  CHECK(place_of(pair("3", "4"))->rank == 3);
  for (const auto& [rank, ranks] : std::vector<std::pair<std::string, std::string>>{
           {"0", ""}, {"", "2"}, {"2", "2"}, {"-1", "2"}, {"0", "0"}, {"x", "2"}, {"0", "2x"}, {"0", "99999999999"}})
    CHECK_THROWS_AS(place_of(pair(rank, ranks)), ConfigError);
  CHECK(place_of(pair("1", "3"))->folder);
}

}  // namespace
}  // namespace hearsay::meeting_place_test
