#pragma once
// Work on a long range, shared between threads.
#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace hearsay {

/// Starting a thread takes tens of microseconds, a pass over so many values milliseconds.
inline constexpr std::size_t worth_a_thread = 2'000'000;

/// Calls work(first, count) for consecutive parts of [0, n), side by side on up to `threads` threads, the caller's
/// among them; each has at least `worth_a_thread`, and all but the last begin and end at a multiple of 16. `work` must
/// not throw.
template <class Work>
void in_parts(std::size_t n, int threads, const Work& work) {
  constexpr std::size_t line = 16;
  const std::size_t parts = std::clamp<std::size_t>(n / worth_a_thread, 1, static_cast<std::size_t>(threads));
  const std::size_t length = (n / parts + line - 1) / line * line;
  std::vector<std::jthread> others;
  std::size_t first = 0;
  for (; others.size() + 1 < parts; first += length)
    others.emplace_back([&work, first, length] { work(first, length); });
  work(first, n - first);
}

}  // namespace hearsay
