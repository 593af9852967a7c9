#include "base/loops/parts.hpp"

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace hearsay::parts_test {
namespace {

TEST_CASE("parts of a range cover it once, on no more threads than allowed, and are worth one each") {
  CHECK(rc::check("any length, any number of threads", [] {
    const auto n = *rc::gen::inRange<std::size_t>(0, 12 * worth_a_thread);
    const auto threads = *rc::gen::inRange(1, 8);
    std::mutex mutex;
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    std::set<std::thread::id> ids;
    in_parts(n, threads, [&](std::size_t first, std::size_t count) {
      const std::lock_guard lock(mutex);
      parts.emplace_back(first, count);
      ids.insert(std::this_thread::get_id());
    });
    std::sort(parts.begin(), parts.end());
    RC_ASSERT(parts.size() == std::clamp<std::size_t>(n / worth_a_thread, 1, static_cast<std::size_t>(threads)));
    RC_ASSERT(ids.count(std::this_thread::get_id()) == 1U);
    std::size_t next = 0;
    for (const auto& [first, count] : parts) {
      RC_ASSERT(first == next);
      RC_ASSERT(first % 16 == 0U);
      next = first + count;
    }
    RC_ASSERT(next == n);
  }));
}

}  // namespace
}  // namespace hearsay::parts_test
