#include "runtime/failure/beginning.hpp"

#include <array>
#include <cstring>
#include <span>

#include "base/error.hpp"

namespace hearsay {
namespace {

using CalendarTime = std::chrono::system_clock::time_point;

struct Numbers {
  std::array<std::int64_t, 3> counts;
  double seconds;
  std::array<std::int64_t, 2> times;
};

std::int64_t count_of(CalendarTime time) { return time.time_since_epoch().count(); }
CalendarTime time_of(std::int64_t count) { return CalendarTime(CalendarTime::duration(count)); }

Numbers numbers_of(const Beginning& beginning) {
  return {.counts = {beginning.checkpoints, beginning.iterations, beginning.evaluations},
          .seconds = beginning.seconds,
          .times = {count_of(beginning.training_began), count_of(beginning.clocks_began)}};
}

void take(Beginning& beginning, const Numbers& numbers) {
  beginning.checkpoints = numbers.counts[0];
  beginning.iterations = numbers.counts[1];
  beginning.evaluations = numbers.counts[2];
  beginning.seconds = numbers.seconds;
  beginning.training_began = time_of(numbers.times[0]);
  beginning.clocks_began = time_of(numbers.times[1]);
}

}  // namespace

void Beginning::share(Communicator& communicator) {
  Numbers numbers = numbers_of(*this);
  communicator.broadcast(std::as_writable_bytes(std::span(&numbers, 1)), 0);
  take(*this, numbers);
}

std::vector<std::byte> Beginning::packed() const {
  const Numbers numbers = numbers_of(*this);
  std::vector<std::byte> bytes(sizeof numbers + run_id.size());
  std::memcpy(bytes.data(), &numbers, sizeof numbers);
  std::memcpy(bytes.data() + sizeof numbers, run_id.data(), run_id.size());
  return bytes;
}

Beginning Beginning::unpacked(const std::vector<std::byte>& bytes) {
  Numbers numbers;
  if (bytes.size() <= sizeof numbers)
    throw CommunicationError("the job says something that this process does not understand; start the same program");
  std::memcpy(&numbers, bytes.data(), sizeof numbers);
  Beginning beginning;
  take(beginning, numbers);
  beginning.run_id.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof numbers, bytes.size() - sizeof numbers);
  return beginning;
}

}  // namespace hearsay
