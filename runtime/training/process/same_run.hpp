#pragma once
// Ranks that belong together: the same build, with the same configuration or options. All of this is collective, to be
// asked before anything is changed or measured, and throws ConfigError on rank 0, naming the ranks that differ.
#include <span>
#include <string>

#include "runtime/transport/communicator.hpp"

namespace hearsay {

void require_same_program(Communicator& communicator);
/// `yaml`: the whole configuration, as this rank has read it.
void require_same_configuration(Communicator& communicator, const std::string& yaml);
/// The two of them.
void require_same_run(Communicator& communicator, const std::string& yaml);
/// `words`: what follows the command on the command line.
void require_same_options(Communicator& communicator, std::span<const std::string> words);

}  // namespace hearsay
