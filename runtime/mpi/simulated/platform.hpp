#pragma once
// Platform files, which say what machines and links a simulated cluster has.
#include <filesystem>
#include <string>
#include <vector>

namespace simgrid::s4u {
class Engine;
class Host;
}  // namespace simgrid::s4u

namespace hearsay::mpi {

/// Why a platform file does not do for so many ranks, in words; empty if it does: SimGrid, version 4.1, takes it, there
/// is a host for each rank, a route between any two, and every link has a bandwidth. SimGrid ends its process over much
/// that it does not like; so a child process tries the file, with at most a minute and 8 GiB.
/// Throws DataError if no process can be started.
std::string refusal(simgrid::s4u::Engine& engine, const std::filesystem::path& file, int ranks);

/// Gives `engine` the hosts and links of a platform file. Returns the ranks' hosts: node2 is before node10.
/// Throws ConfigError if there is no such file, or a refusal; DataError as refusal().
std::vector<simgrid::s4u::Host*> load_platform(simgrid::s4u::Engine& engine, const std::filesystem::path& file,
                                               int ranks);

}  // namespace hearsay::mpi
