#pragma once
// Where the ranks of a run begin, as those are told who do not begin with them: spares, and who comes later.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/transport/communicator.hpp"

namespace hearsay {

struct Beginning {
  std::string run_id{};
  std::int64_t checkpoints = 0;  ///< written in earlier parts of the run, as the next three
  std::int64_t iterations = 0;
  std::int64_t evaluations = 0;
  double seconds = 0.0;
  std::chrono::system_clock::time_point training_began{};
  std::chrono::system_clock::time_point clocks_began{};  ///< Ledger::since_start

  /// All but the id: rank 0's, on all of them. Collective.
  void share(Communicator& communicator);
  std::vector<std::byte> packed() const;
  /// Throws CommunicationError where it is something else.
  static Beginning unpacked(const std::vector<std::byte>& bytes);
};

}  // namespace hearsay
