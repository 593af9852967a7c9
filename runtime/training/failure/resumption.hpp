#pragma once
// Which checkpoint a resumed run goes on from. Private to sessions.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/state/archive.hpp"
#include "runtime/report/checkpoint.hpp"
#include "runtime/training/model/model.hpp"
#include "runtime/transport/communicator.hpp"
#include "runtime/transport/engine.hpp"

namespace hearsay {

/// The newest complete checkpoint that all ranks can read. All but `states` and `of` are the same on all of them.
struct Resumption {
  std::uint64_t number = 0;
  int ranks = 1;        ///< of the job that wrote it
  int living = 1;       ///< of which so many were alive
  bool settled = true;  ///< they had met
  double epoch = 0.0;
  /// Those of the ranks r, r + P, r + 2 P, … of that job that were alive, r being this rank of P; on as many ranks
  /// as before it is this rank's own, or none.
  std::vector<RawBytes> states{};
  std::vector<int> of{};  ///< whose they are
};
/// Collective. Nothing where there is none.
std::optional<Resumption> newest_checkpoint(CommunicationEngine& engine, Communicator& communicator,
                                            const CheckpointFolder& folder);
/// Collective. Checkpoints that are newer, which are not complete, are removed. Throws DataError where there is none.
Resumption find_checkpoint(CommunicationEngine& engine, Communicator& communicator, const CheckpointFolder& folder);

/// Loads a part of a state; all of it must be read. `file` begins the messages.
void load_part(std::span<const std::byte> state, const char* name, const std::string& file,
               const std::function<void(Archive&)>& load);

/// Where ranks cannot go on as themselves. Collective. The model ← the mean over all saved ranks, buffers included.
/// Returns what
/// all of them owed together, or nothing if they did not.
std::vector<float> load_mean(const Resumption& found, CommunicationEngine& engine, Communicator& communicator,
                             const CheckpointFolder& folder, Model& model);

}  // namespace hearsay
