#pragma once
// Platform files, which say what machines and links a simulated cluster has.
#include <filesystem>

namespace simgrid::s4u {
class Engine;
}

namespace hearsay::mpi {

/// Gives `engine` the hosts and links of a platform file of SimGrid, version 4.1, for so many ranks. SimGrid ends its
/// process over much that it does not like; so a child process tries the file first, in at most a minute.
/// Throws ConfigError if there is no such file, SimGrid does not take it, a link is without bandwidth, or there are
/// fewer hosts than ranks.
void load_platform(simgrid::s4u::Engine& engine, const std::filesystem::path& file, int ranks);

}  // namespace hearsay::mpi
