#include "runtime/training/process/same_run.hpp"

#include <fstream>
#include <iterator>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "runtime/report/totals.hpp"

namespace hearsay {
namespace {

/// XXH3 over the file of the program that runs: ranks with equal hashes run the same build. 0 where the system does not
/// say which file that is (no /proc).
std::uint64_t program_hash() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  if (!file) return 0;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return xxh3(std::as_bytes(std::span(bytes)));
}

}  // namespace

void require_same_program(Communicator& communicator) {
  const std::string ranks = ranks_that_differ(communicator, std::to_string(program_hash()));
  if (ranks.empty()) return;
  throw ConfigError("the program of rank " + ranks +
                    " is another build than that of rank 0; install the same one on every host (`hearsay --version` "
                    "shows which one a host has)");
}

void require_same_configuration(Communicator& communicator, const std::string& yaml) {
  const std::string ranks = ranks_that_differ(communicator, yaml);
  if (ranks.empty()) return;
  throw ConfigError("the configuration of rank " + ranks +
                    " differs from that of rank 0; give all ranks the same file, --set values and working directory "
                    "(`hearsay train --dump-config` shows what a rank reads)");
}

void require_same_run(Communicator& communicator, const std::string& yaml) {
  require_same_program(communicator);
  require_same_configuration(communicator, yaml);
}

void require_same_options(Communicator& communicator, std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += word + '\n';
  const std::string ranks = ranks_that_differ(communicator, line);
  if (ranks.empty()) return;
  throw ConfigError("the options of rank " + ranks +
                    " differ from those of rank 0; start all ranks with the same command line");
}

}  // namespace hearsay
