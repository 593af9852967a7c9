// The hand-off between the computing thread and the communication thread, without MPI.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/transport/engine.hpp"

namespace hearsay::engine_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("wait_until returns once the communication side has made it true") {
  std::atomic<int> steps{0};
  ThreadEngine engine([&] { return ++steps < 1000; });
  engine.wait_until([&] { return steps.load() >= 500; });
  CHECK(steps.load() >= 500);
}

TEST_CASE("jobs run on one other thread, in order, and what they throw comes back") {
  ThreadEngine engine([] { return false; });
  std::thread::id first;
  std::thread::id second;
  engine.run([&] { first = std::this_thread::get_id(); });
  engine.run([&] { second = std::this_thread::get_id(); });
  CHECK(first == second);
  CHECK(first != std::this_thread::get_id());
  CHECK_THROWS_AS(engine.run([] { throw std::runtime_error("job"); }), std::runtime_error);
  CHECK_NOTHROW(engine.run([] {}));
}

TEST_CASE("an exception is handed over whole: the thread that threw it never touches it again") {
  ThreadEngine engine([] { return false; });
  for (int i = 0; i < 2000; ++i) {  // ThreadSanitizer judges
    CHECK_THROWS_AS(engine.run([] { throw std::runtime_error("job"); }), std::runtime_error);
  }
}

TEST_CASE("submitted jobs run in order while the computing thread goes on") {
  ThreadEngine engine([] { return false; });
  std::atomic<bool> released{false};
  std::atomic<int> done{0};
  std::vector<int> order;  // written by one thread, read after all jobs are done
  for (int i = 0; i < 100; ++i) {
    engine.submit([&, i] {
      while (!released.load()) std::this_thread::yield();
      order.push_back(i);
      done.fetch_add(1);
    });
  }
  CHECK(done.load() == 0);  // submit did not wait
  released = true;
  engine.wait_until([&] { return done.load() == 100; });
  CHECK(std::ranges::is_sorted(order));
  CHECK(order.size() == 100);
}

TEST_CASE("a submitted job that throws drops those after it and is reported once; the engine goes on") {
  ThreadEngine engine([] { return false; });
  std::atomic<bool> released{false};
  std::atomic<int> ran{0};
  engine.submit([&] {
    while (!released.load()) std::this_thread::yield();
    throw std::runtime_error("collective");
  });
  engine.submit([&] { ran.fetch_add(1); });
  released = true;
  CHECK_THROWS_AS(engine.wait_until([] { return false; }), std::runtime_error);
  CHECK(ran.load() == 0);
  CHECK_NOTHROW(engine.run([&] { ran.fetch_add(1); }));
  CHECK(ran.load() == 1);
}

// Such a job may refer to what is destroyed when the computing thread hears of the failure.
TEST_CASE("what is submitted after a failure that nobody has heard of yet is dropped, too") {
  for (int round = 0; round < 20; ++round) {
    ThreadEngine engine([] { return false; });
    std::atomic<bool> failing{false};
    std::atomic<int> ran{0};
    engine.submit([&] {
      failing = true;
      throw std::runtime_error("collective");
    });
    while (!failing.load()) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);  // it is known by then, as a rule
    engine.submit([&] { ran.fetch_add(1); });
    std::this_thread::sleep_for(1ms);
    CHECK_THROWS_AS(engine.wait_until([] { return false; }), std::runtime_error);
    CHECK(ran.load() == 0);
    CHECK_NOTHROW(engine.run([&] { ran.fetch_add(1); }));
    CHECK(ran.load() == 1);
  }
}

TEST_CASE("a job that is waited for after one that fails is not waited for in vain") {
  ThreadEngine engine([] { return false; });
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> ran{false};
    engine.submit([&] {
      std::this_thread::sleep_for(100us);
      throw std::runtime_error("collective");
    });
    CHECK_THROWS_AS(engine.run([&] { ran = true; }), std::runtime_error);
    CHECK_FALSE(ran.load());
    CHECK_NOTHROW(engine.run([&] { ran = true; }));
    CHECK(ran.load());
  }
}

TEST_CASE("a failing step reaches the computing thread wherever it is") {
  std::atomic<bool> fail{false};
  ThreadEngine engine([&]() -> bool {
    if (fail) throw std::runtime_error("network");
    return false;
  });
  CHECK_NOTHROW(engine.wake());
  fail = true;
  CHECK_THROWS_AS(engine.wait_until([] { return false; }), std::runtime_error);
  CHECK_THROWS_AS(engine.wake(), std::runtime_error);
  CHECK_THROWS_AS(engine.run([] {}), std::runtime_error);
}

TEST_CASE("an idle engine sleeps") {
  std::atomic<int> steps{0};
  ThreadEngine engine([&] { return ++steps, false; }, {.longest = 1000us});
  std::this_thread::sleep_for(200ms);
  CHECK(steps.load() < 2000);  // polling would reach hundreds of thousands
}

TEST_CASE("naps grow until the longest: the longer nothing has come, the less often somebody looks") {
  const Naps naps{.shortest = 20us, .growth = 4, .longest = 50ms};
  constexpr int polls = 4, naps_until_the_longest = 6;  // 20 µs, 80 µs … 20.5 ms
  std::atomic<int> steps{0};
  const auto began = std::chrono::steady_clock::now();
  ThreadEngine engine([&] { return ++steps, false; }, naps);
  std::this_thread::sleep_for(400ms);
  const int looks = steps.load();
  const auto longest_naps = (std::chrono::steady_clock::now() - began) / naps.longest;
  CHECK(looks > polls);
  CHECK(looks <= 1 + polls + naps_until_the_longest + static_cast<int>(longest_naps));
}

TEST_CASE("waking is noticed although the engine sleeps") {
  std::atomic<bool> asked{false};
  std::atomic<bool> answered{false};
  ThreadEngine engine([&] { return asked.load() && !answered.exchange(true); }, {.longest = 10s});
  std::this_thread::sleep_for(20ms);
  asked = true;
  engine.wait_until([&] { return answered.load(); });
  CHECK(answered.load());
}

TEST_CASE("the inline engine moves communication on when it is called") {
  int steps = 0;
  InlineEngine engine([&] { return ++steps % 3 != 0; });
  engine.wake();
  CHECK(steps == 3);
  engine.poll();
  CHECK(steps == 6);
  engine.wait_until([&] { return steps >= 10; });
  CHECK(steps == 10);
  CHECK_THROWS_AS(engine.run([] { throw std::logic_error("job"); }), std::logic_error);
}

TEST_CASE("the inline engine is idle only after a step that moved nothing, and not if that was enough") {
  int steps = 0, idle = 0;
  InlineEngine engine([&] { return ++steps % 3 != 0; }, [&] { ++idle; });
  engine.wait_until([&] { return steps == 9; });
  CHECK(idle == 2);
}

TEST_CASE("on a simulated clock a job and the computing after it take the longer of the two, until somebody waits") {
  static double now_s = 0.0;
  InlineEngine engine([] { return false; }, [] {},
                      [] { return std::chrono::nanoseconds(static_cast<std::int64_t>(now_s * 1e9)); });
  const auto compute = [&](double seconds) { now_s += engine.still_to_pass(seconds); };
  const auto job = [](double seconds) { return [seconds] { now_s += seconds; }; };
  engine.submit(job(4));
  compute(3);
  CHECK(now_s == 4.0);
  compute(3);  // 1 beside the job, 2 after it
  CHECK(now_s == 6.0);
  engine.submit(job(1));  // computing goes on after the first, beside the second
  engine.submit(job(1));
  compute(3);
  CHECK(now_s == 9.0);
  engine.submit(job(4));
  engine.wait_until([] { return true; });
  compute(3);  // nothing is under way any more
  CHECK(now_s == 16.0);
  engine.submit(job(4));
  engine.run(job(1));  // after it, and waited for
  compute(2);
  CHECK(now_s == 23.0);
}

}  // namespace
}  // namespace hearsay::engine_test
