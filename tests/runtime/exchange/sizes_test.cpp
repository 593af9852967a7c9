// Models that are too large for positions of 32 bits are refused with a sentence, before there is anything of their
// size.
#include <algorithm>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "runtime/collectives/sparse_vector.hpp"
#include "runtime/transport/packet.hpp"
#include "tests/runtime/collectives/support.hpp"
#include "tests/runtime/exchange/global_job.hpp"

namespace hearsay::sizes_test {
namespace {

constexpr std::int64_t too_many = std::int64_t{1} << 32;

Layout one_segment(std::int64_t values) {
  Layout layout;
  layout.append("embedding.weight", {values});
  return layout;
}

/// What the plan says to a layout; empty where it takes it.
std::string refusal(const std::string& yaml, const Layout& layout) {
  try {
    static_cast<void>(test::GlobalPlan(yaml)->packet_bound(layout, 2));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

std::string sparse(const ExchangeEntry& entry) {
  return "exchange: {name: " + std::string(entry.name) + "}\nsparsify: {selector: {name: topk, density: 0.1}}\n";
}

/// Whether there is anything to choose of what it sends.
bool sends_positions(const ExchangeEntry& entry) {
  try {
    const test::GlobalPlan plan(sparse(entry));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

TEST_CASE("every exchange that sends positions refuses what 32 bits cannot tell apart, and takes one value fewer") {
  CHECK(std::ranges::count_if(exchanges(), sends_positions) >= 7);
  for (const ExchangeEntry& entry : exchanges()) {
    if (!sends_positions(entry)) continue;
    CAPTURE(entry.name);
    const std::string yaml = sparse(entry);
    const std::string message = refusal(yaml, one_segment(too_many));
    CAPTURE(message);
    CHECK(message.find(std::to_string(too_many)) != std::string::npos);
    CHECK(message.find("exchange.name: dpsgd") != std::string::npos);
    CHECK(refusal(yaml, one_segment(too_many - 1)).empty());
  }
}

TEST_CASE("the refusal names the segment; whole segments of any length travel") {
  const std::string eventgrad = "exchange: {name: eventgrad}\nsparsify: {selector: {name: ";
  CHECK(refusal(eventgrad + "topk, density: 0.1}}\n", one_segment(too_many)).find("embedding.weight") !=
        std::string::npos);
  for (const std::string& whole : {eventgrad + "dense}}\n", std::string("exchange: {name: dpsgd}\n")})
    CHECK(test::GlobalPlan(whole)->packet_bound(one_segment(too_many), 2) ==
          sizeof(PacketHeader) + sizeof(SegmentHeader) + 4 * static_cast<std::size_t>(too_many));
}

TEST_CASE("a sparse message over too many positions is refused when its wire is made") {
  const Codec codec = test::codec_of("plain", "none");
  CHECK_THROWS_AS(SparseWire(codec, static_cast<std::size_t>(too_many), {}), ConfigError);
  CHECK_NOTHROW(SparseWire(codec, static_cast<std::size_t>(too_many - 1), {}));
}

}  // namespace
}  // namespace hearsay::sizes_test
