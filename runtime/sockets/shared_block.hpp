#pragma once
// Memory that processes of one host share: an anonymous file (memfd), passed from one to the other on their connection.
// It has no name anywhere, so it is gone with the last of them, however they end; and it takes no room in /dev/shm.
// Included in runtime/sockets/ only.
#include <cstddef>
#include <span>

#include "runtime/sockets/descriptor.hpp"

namespace hearsay::sockets {

class SharedBlock {
 public:
  /// Zero, all of it there. Throws CommunicationError where the machine has not so much.
  explicit SharedBlock(std::size_t bytes);
  /// Another process's. Throws ConnectionLost where `file` is no such block, CommunicationError where there is no
  /// room.
  SharedBlock(Descriptor file, std::size_t bytes);
  ~SharedBlock();
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&&) = delete;

  std::span<std::byte> bytes() const { return {base_, bytes_}; }
  /// For another process.
  Descriptor file() const;

 private:
  void map();

  Descriptor file_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hearsay::sockets
