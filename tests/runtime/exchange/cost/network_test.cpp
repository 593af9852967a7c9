// The file of `hearsay probe`: what is written is read back, and what is not such a file is refused with its place.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "runtime/exchange/cost/network.hpp"
#include "tests/runtime/report/temporary_folder.hpp"

namespace network_test {

using namespace hearsay;
using namespace hearsay::test;

namespace {

Network example() {
  return {.ranks = 3,
          .hosts = 2,
          .inside = {.alpha_s = 1e-6, .beta_s = 5e-10},
          .between = {.alpha_s = 1.5e-4, .beta_s = 3.25e-8},
          .loads = {{.bytes = 64'000, .crossing = 1.75, .shifting = 1.25},
                    {.bytes = 4e6, .crossing = 1.5, .shifting = 1.0}},
          .memory_s = 1e-10,
          .read_s = 2e-10,
          .selection_s = 7.5e-10,
          .kept_s = 3e-9,
          .merge_s = 2e-8,
          .links = {{.rank = 1, .same_host = true, .model = {.alpha_s = 1e-6, .beta_s = 5e-10}},
                    {.rank = 2, .same_host = false, .model = {.alpha_s = 1.5e-4, .beta_s = 3.25e-8}}}};
}

Network read_back(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "network.yaml";
  std::ofstream(file) << text;
  return read_network(file);
}

std::string complaint(const std::string& text) {
  try {
    read_back(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a network is read as it was written") {
  const Network network = example(), read = read_back(network_yaml(network, "a test"));
  CHECK(read.ranks == 3);
  CHECK(read.hosts == 2);
  CHECK(read.inside.alpha_s == network.inside.alpha_s);
  CHECK(read.between.beta_s == network.between.beta_s);
  REQUIRE(read.loads.size() == 2);
  CHECK(read.loads[0].bytes == 64'000.0);
  CHECK(read.loads[0].crossing == 1.75);
  CHECK(read.loads[1].bytes == 4e6);
  CHECK(read.loads[1].crossing == 1.5);
  CHECK(read.loads[1].shifting == 1.0);
  CHECK(read.read_s == network.read_s);
  CHECK(read.memory_s == network.memory_s);
  CHECK(read.selection_s == network.selection_s);
  CHECK(read.kept_s == network.kept_s);
  CHECK(read.merge_s == network.merge_s);
  REQUIRE(read.links.size() == 2);
  CHECK(read.links[0].same_host);
  CHECK_FALSE(read.links[1].same_host);
  CHECK(read.links[1].model.beta_s == 3.25e-8);
}

TEST_CASE("what is no network file is refused") {
  CHECK_THROWS_AS(read_network("/nowhere/network.yaml"), DataError);
  CHECK(complaint("seed: 7").find("unknown key") != std::string::npos);
  CHECK(complaint("ranks: 2").find("alpha_s and beta_s_per_word") != std::string::npos);
  std::string negative = network_yaml(example(), "a test");
  negative.replace(negative.find("1e-06"), 5, "-1.00");
  CHECK(complaint(negative).find(">= 0") != std::string::npos);
}

}  // namespace network_test
