// Searches whose blocks run one after another or side by side find what the processor finds, call after call: what
// blocks share is for ThreadSanitizer to see.
#include <doctest/doctest.h>

#include "runtime/gpu/device_search.hpp"
#include "runtime/gpu/machine/emulator.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::search_blocks_test {
namespace {

using namespace test;
using device::EmulatedBuffer;

template <class T>
std::vector<T> downloaded(const EmulatedBuffer<T>& buffer, std::size_t count) {
  std::vector<T> values(count);
  buffer.download(std::span<T>(values));
  return values;
}

void compare(const std::string& yaml, device::Emulator emulator) {
  constexpr std::size_t n = 70'001;
  const auto here = make_selector(yaml), there = here->fresh();
  const std::size_t k = kept_count(here->density(), n), most = here->most(k, n);
  DeviceSearch<device::Emulator> search(emulator, there->search_kind(), n, most);
  EmulatedBuffer<float> r_there(n), g_there(n), values_there(most);
  EmulatedBuffer<std::uint32_t> positions_there(most);
  std::vector<float> r(n);
  r_there.upload(std::span<const float>(r));
  for (std::uint64_t call = 0; call < 3; ++call) {
    const auto g = normal_values(call, n);
    g_there.upload(std::span<const float>(g));
    search.add_and_select(emulator, r_there.data(), g_there.data(), 0.5F, k, there->next_search(k, n),
                          {positions_there.data(), values_there.data()});
    Indices positions;
    here->add_and_select(r, g, 0.5F, k, positions);
    std::vector<float> values;
    for (const std::uint32_t i : positions) values.push_back(std::exchange(r[i], 0.0F));
    CHECK(search.control_block()->found == positions.size());
    CHECK(downloaded(positions_there, positions.size()) == positions);
    CHECK(downloaded(values_there, values.size()) == values);
    CHECK(downloaded(r_there, n) == r);
  }
}

TEST_CASE("every search with few blocks and many, one at a time and several") {
  for (const std::string yaml :
       {"{name: topk, density: 0.01}", "{name: mstopk, density: 0.01}", "{name: mstopk, density: 0.2, steps: 40}",
        "{name: sampled, density: 0.05, sample: 0.02}", "{name: chunked, density: 0.03}"}) {
    CAPTURE(yaml);
    compare(yaml, device::Emulator(0, 3, 1));
    compare(yaml, device::Emulator(1, 7, 3));
    compare(yaml, device::Emulator(2, 264, 2));
  }
}

}  // namespace
}  // namespace hearsay::search_blocks_test
