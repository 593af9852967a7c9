#pragma once
// What is said of a packet that came whole and cannot be what was agreed.
#include <string>

#include "base/error.hpp"
#include "runtime/transport/packet.hpp"

namespace hearsay {

/// Names both ranks. `why`: what of it does not fit.
inline CommunicationError misfit(const PacketHeader& header, int receiver, const std::string& why) {
  return CommunicationError("the packet of iteration " + std::to_string(header.iteration) + " from rank " +
                            std::to_string(header.sender) + " to rank " + std::to_string(receiver) +
                            " does not fit this rank's model: " + why +
                            ". The ranks run different models, configurations or versions");
}

}  // namespace hearsay
