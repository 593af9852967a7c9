#pragma once
// What `hearsay probe` has measured of a network and its machines, and the file that it is kept in.
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/exchange/cost/alpha_beta.hpp"

namespace hearsay {

/// A link between rank 0 and another rank.
struct Link {
  int rank = 0;
  bool same_host = false;
  AlphaBeta model{};
};

/// How many times longer a message takes where all ranks send at once, over one that travels alone: pairs of ranks to
/// each other, and every rank to the next one. What links, switches, MPI and shared processors lose; at least 1.
struct Load {
  double bytes = 0.0;  ///< of the message
  double crossing = 1.0, shifting = 1.0;
};

/// The lengths of message that it is measured for.
inline constexpr std::array<std::size_t, 5> loaded_bytes{64'000, 250'000, 1'000'000, 4'000'000, 16'000'000};

struct Network {
  int ranks = 2, hosts = 1;   ///< where it was measured
  AlphaBeta inside{};         ///< between two ranks of one host: the slowest link measured
  AlphaBeta between{};        ///< between hosts: the slowest link measured; `inside` if there was one host only
  std::vector<Load> loads{};  ///< ascending by length; lengths may be missing
  /// Seconds, on average while all ranks do the same, per byte that r += g reads or writes; per byte that a selection
  /// of many reads reads (mstopk's); per value of an exact top-k, with the sum before it and the clearing after it; per
  /// entry that it keeps; per entry of two sparse lists that are merged.
  double memory_s = 0.0, read_s = 0.0, selection_s = 0.0, kept_s = 0.0, merge_s = 0.0;
  std::vector<Link> links{};
};

/// YAML that `read_network` reads. `origin` goes into a comment: who measured, with what.
std::string network_yaml(const Network& network, const std::string& origin);
/// Throws DataError if the file cannot be read, ConfigError (file:line:column) if it is not what `hearsay probe`
/// writes.
Network read_network(const std::filesystem::path& file);

}  // namespace hearsay
