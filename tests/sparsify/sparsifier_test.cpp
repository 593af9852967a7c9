// The section `sparsify:`.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "sparsify/sparsify.hpp"

namespace hearsay::sparsifier_test {
namespace {

Sparsifier read(const std::string& yaml, const SparsifierDefaults& defaults = {}) {
  Config config = Config::from_text(yaml);
  Sparsifier sparsifier = read_sparsifier(config, defaults);
  config.document().throw_if_invalid();
  return sparsifier;
}

std::string refusal(const std::string& yaml, const SparsifierDefaults& defaults = {}) {
  try {
    read(yaml, defaults);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("an empty section is what the exchange assumes, in full precision") {
  const Sparsifier dense = read("");
  CHECK(dense.dense);
  CHECK(dense.per_segment);
  CHECK(dense.dense_below == 0);
  CHECK(dense.codec->exact());
  CHECK(dense.density(0.0) == 1.0);
  const Sparsifier topk = read("", {.selector = "topk", .per_segment = false});
  CHECK_FALSE(topk.dense);
  CHECK_FALSE(topk.per_segment);
  CHECK(topk.density(3.5) == 0.1);
}

TEST_CASE("every choice is read") {
  const Sparsifier read_back = read(
      "{selector: {name: topk, density: 0.01, scope: global, dense_below: 128}, codec: {name: delta},"
      " quantiser: {name: one_bit, centre: row_mean}}");
  CHECK_FALSE(read_back.per_segment);
  CHECK(read_back.dense_below == 128);
  CHECK_FALSE(read_back.codec->exact());
  CHECK(read_back.codec->by_rows());
  CHECK(read_back.density(7.0) == 0.01);
  CHECK(read("{selector: {name: topk, scope: per_segment}}", {.per_segment = false}).per_segment);
}

TEST_CASE("the schedule has one density an epoch, then the selector's own") {
  const Sparsifier read_back = read("{selector: {name: topk, density: 0.001}, density_schedule: [0.25, 0.0625, 1]}");
  CHECK(read_back.density(0.0) == 0.25);
  CHECK(read_back.density(0.999) == 0.25);
  CHECK(read_back.density(1.0) == 0.0625);
  CHECK(read_back.density(2.5) == 1.0);
  CHECK(read_back.density(3.0) == 0.001);
  CHECK(read_back.density(1e9) == 0.001);
  CHECK(read_back.largest_density() == 1.0);
  CHECK(read("{selector: {name: topk, density: 0.5}, density_schedule: [0.25]}").largest_density() == 0.5);
}

TEST_CASE("what cannot be is refused by name") {
  CHECK(refusal("{density_schedule: [0.5]}").find("density_schedule: the selector 'dense'") != std::string::npos);
  CHECK(refusal("{selector: {name: threshold}, density_schedule: [0.5]}").find("'threshold'") != std::string::npos);
  CHECK(refusal("{selector: {name: topk}, density_schedule: [0.5, 0]}").find("density_schedule[1]") !=
        std::string::npos);
  CHECK(refusal("{selector: {name: topk, dense_below: -1}}").find("dense_below") != std::string::npos);
  CHECK(refusal("{selector: {name: topk, scope: local}}").find("scope") != std::string::npos);
  CHECK(refusal("{quantiser: {name: fp61}}").find("fp16") != std::string::npos);
  CHECK(refusal("{codec: {name: detla}}").find("delta") != std::string::npos);
}

TEST_CASE("a scope that cannot be chosen is no key") {
  const SparsifierDefaults fixed{.per_segment = true, .scope_is_fixed = true};
  CHECK(read("", fixed).per_segment);
  CHECK(refusal("{selector: {name: topk, scope: global}}", fixed).find("unknown key") != std::string::npos);
}

TEST_CASE("what was read can be written and read back") {
  Config config = Config::from_text("{selector: {name: sampled, dense_below: 3}, density_schedule: [0.5, 0.25]}");
  read_sparsifier(config, {});
  const std::string dumped = config.document().dump();
  CHECK(dumped.find("density_schedule: [0.5, 0.25]") != std::string::npos);
  CHECK(read(dumped).schedule == std::vector<double>{0.5, 0.25});
  CHECK(read(dumped).dense_below == 3);
}

}  // namespace
}  // namespace hearsay::sparsifier_test
