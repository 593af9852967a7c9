#pragma once
// What travels on a connection after the greeting: frames, numbers in the machine's byte order (members of a job run on
// like machines). Included in runtime/sockets/ only.
#include <cstdint>

namespace hearsay::sockets {

enum class FrameKind : std::uint32_t {
  message = 1,  ///< body: one message
  window,       ///< number: the sender's memory has so many bytes; with its file where the members share a host
  put,          ///< body: to byte `number` of the receiver's memory
  flush,        ///< the receiver says `flushed` with the same number, when all before this is in its memory
  flushed,
  get,      ///< number: the offset of the word that the sender wants
  word,     ///< number: that word
  goodbye,  ///< nothing follows
};

struct Frame {
  FrameKind kind{};
  std::uint32_t channel = 0;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;  ///< of the body, which follows
};
static_assert(sizeof(Frame) == 24);

}  // namespace hearsay::sockets
