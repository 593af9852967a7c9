// What the exact selectors select.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "sparsify/search/exact_select.hpp"
#include "tests/sparsify/values.hpp"

namespace hearsay::exact_selectors_test {
namespace {

using namespace test;

TEST_CASE("dense keeps every position, whatever k") {
  const auto selector = make_selector("name: dense");
  for (const std::size_t n : {0U, 1U, 1001U}) {
    CHECK(selector->most(0, n) == n);
    for (const std::size_t k : {std::size_t{0}, n / 2, n})
      CHECK(selected(*selector, normal_values(1, n), k) == largest(normal_values(1, n), n));
  }
}

TEST_CASE("topk: the largest magnitudes, ties to the lower position") {
  const auto topk = make_selector("name: topk");
  CHECK(selected(*topk, std::vector<float>{1, -3, 2, -2, 3, 0}, 3) == Indices{1, 2, 4});
  CHECK(selected(*topk, std::vector<float>{0.0F, -0.0F, 0.0F, 0.0F}, 2) == Indices{0, 1});
  CHECK(selected(*topk, std::vector<float>{1, 2, -2}, 1) == Indices{1});
  CHECK(selected(*topk, std::vector<float>{1, 2, -2}, 0).empty());
  CHECK(selected(*topk, std::vector<float>{1, 2, -2}, 3) == Indices{0, 1, 2});
  Indices first(10000);
  std::iota(first.begin(), first.end(), 0U);
  CHECK(selected(*topk, std::vector<float>(100000, -1.5F), 10000) == first);
}

TEST_CASE("topk agrees with a stable sort on values of every kind") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto n = *rc::gen::element<std::size_t>(1, 2, 3, 63, 64, 65, 1000, 4096, 4097, 4099, 9001, 30011);
    const auto k = kept_count(*rc::gen::element(0.0005, 0.01, 0.1, 0.37, 0.5, 0.93, 0.9999, 1.0), n);
    const auto bits = *rc::gen::inRange(0, 22);
    const auto selector = make_selector("name: topk");
    for (const auto& values :
         {normal_values(seed, n), tied_values(seed, n), nearly_equal_values(seed, n, bits), any_values(seed, n)})
      RC_ASSERT(selected(*selector, values, k) == largest(values, k));
  }));
}

TEST_CASE("chunked: of every chunk its largest magnitudes, as many as its share of k") {
  const auto pairs = make_selector("{name: chunked, chunk: 2}");
  CHECK(selected(*pairs, std::vector<float>{1, -3, 2, -2, 3, 0}, 3) == Indices{1, 2, 4});
  CHECK(selected(*pairs, std::vector<float>{9, 8, 7, 1, 1, 2}, 3) == Indices{0, 2, 5});
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto n = *rc::gen::inRange<std::size_t>(1, 3000);
    const auto k = *rc::gen::inRange<std::size_t>(0, n + 1);
    const auto chunk = *rc::gen::inRange<std::size_t>(1, 1200);
    const auto values = tied_values(seed, n);
    const auto kept = selected(*make_selector("{name: chunked, chunk: " + std::to_string(chunk) + "}"), values, k);
    RC_ASSERT(kept.size() == k);
    for (std::size_t begin = 0; begin < n; begin += chunk) {
      const std::size_t length = std::min(chunk, n - begin);
      const auto inside = [&](std::uint32_t i) { return i >= begin && i < begin + length; };
      const auto count = static_cast<std::size_t>(std::ranges::count_if(kept, inside));
      const double share = static_cast<double>(k) * static_cast<double>(length) / static_cast<double>(n);
      RC_ASSERT(std::abs(static_cast<double>(count) - share) < 1.0);
      Indices own = largest(std::span(values).subspan(begin, length), count);
      for (std::uint32_t& i : own) i += static_cast<std::uint32_t>(begin);
      RC_ASSERT(std::ranges::includes(kept, own));
    }
  }));
}

TEST_CASE("topk agrees with a stable sort on a million values") {
  const auto selector = make_selector("name: topk");
  for (const std::size_t k : {1U, 1000U, 100000U}) {
    for (const auto& values : {normal_values(1, 1000000), tied_values(2, 1000000), nearly_equal_values(3, 1000000, 10)})
      CHECK(selected(*selector, values, k) == largest(values, k));
  }
}

TEST_CASE("topk is exact where its sample misleads") {
  const auto topk = make_selector("name: topk");
  constexpr std::size_t n = 100000, k = 200;
  std::vector<float> high = normal_values(5, n), low = high;
  for (std::size_t s = 0; s < 180; ++s) high[ExactSelect::sample_position(n, s)] = 1000.0F + static_cast<float>(s);
  CHECK(selected(*topk, high, k) == largest(high, k));  // the sample has seen nearly all of the largest
  for (std::size_t s = 0; s < ExactSelect::sample_size(n); ++s) low[ExactSelect::sample_position(n, s)] = 0.0F;
  CHECK(selected(*topk, low, k) == largest(low, k));  // and here nothing but zeros
}

TEST_CASE("topk: where nearly all values are 0, the first zeros fill what is left") {
  const auto topk = make_selector("name: topk");
  constexpr std::size_t n = 70000;  // more than are looked at one by one
  CHECK(rc::check([&] {
    std::vector<float> values(n, 0.0F);
    const auto reach = *rc::gen::element<std::size_t>(40, n);  // what is not 0 may lie among the first zeros, or not
    const auto nonzero = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, reach));
    for (const std::size_t i : nonzero) values[i] = i % 2 == 0 ? 3.0F : -1.0F - static_cast<float>(i % 5);
    const auto k = *rc::gen::inRange<std::size_t>(1, 120);
    RC_ASSERT(selected(*topk, values, k) == largest(values, k));
  }));
}

TEST_CASE("topk: one value more is one position more") {
  const auto selector = make_selector("name: topk");
  const auto values = any_values(8, 20);
  for (std::size_t k = 0; k <= 20; ++k) CHECK(selected(*selector, values, k) == largest(values, k));
}

TEST_CASE("threshold: from it on, whatever k") {
  const auto selector = make_selector("{name: threshold, threshold: 2}");
  const std::vector<float> values{1, -3, 2, -2, 1.9999F, 0, 5};
  for (std::size_t k = 0; k <= values.size(); ++k) CHECK(selected(*selector, values, k) == Indices{1, 2, 3, 6});
  CHECK(selector->most(0, 7) == 7);
  CHECK(selected(*selector, std::vector<float>(5, 1.0F), 5).empty());
}

TEST_CASE("threshold 0 keeps what dense keeps") {
  for (const std::size_t n : {0U, 1U, 65U, 9999U})
    CHECK(selected(*make_selector("{name: threshold, threshold: 0}"), tied_values(n, n), 0) ==
          selected(*make_selector("name: dense"), tied_values(n, n), 0));
}

}  // namespace
}  // namespace hearsay::exact_selectors_test
