#pragma once
// One connection to another member: frames go out in the order in which they were given, and come in whole. Nothing
// waits. Included in runtime/sockets/ only.
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/raw_bytes.hpp"
#include "runtime/sockets/descriptor.hpp"
#include "runtime/sockets/frame.hpp"

namespace hearsay::sockets {

/// The connection is at an end, and why.
struct ConnectionLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Who takes what comes.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// Where the body of a frame is to lie, as long as it is; nothing where the receiver has no memory of its own for it.
  /// Throws ConnectionLost for a frame that no member sends.
  virtual std::optional<std::span<std::byte>> destination_of(const Frame& frame) = 0;
  /// `body` is empty where it had one. `file`: what came with it.
  virtual void arrived(const Frame& frame, RawBytes body, Descriptor file) = 0;
};

class Connection {
 public:
  /// `socket` does not block. `local`: it can pass files.
  Connection(Descriptor socket, bool local);

  int socket() const { return socket_.number(); }
  /// Takes a frame with its body, which must stay until `sent()` has reached the number that is returned.
  std::uint64_t send(const Frame& frame, std::span<const std::byte> body = {}, Descriptor file = {});
  std::uint64_t sent() const { return sent_; }
  bool has_unsent() const { return !outgoing_.empty(); }
  /// Copies the bodies that have not gone: their owner goes on without waiting for them.
  void keep_unsent();
  /// Hands to the kernel what that takes. Throws ConnectionLost.
  void push();
  /// Takes what has come, some megabytes at most. True if that is anything. Throws ConnectionLost.
  bool pull(Receiver& receiver);
  /// False once `pull` has thrown.
  bool is_open() const { return open_; }
  /// The channel goes, and bodies that have not gone, and the memory for one that comes, went before it. What was not
  /// sent is sent empty; of a body that is half gone the rest is zeros.
  void forget(std::uint32_t channel);

 private:
  struct Outgoing {
    Frame frame;
    std::span<const std::byte> body;
    Descriptor file;
    RawBytes kept{};
    std::size_t done = 0;  // of header and body
  };
  struct Incoming {
    Frame frame;
    std::optional<std::span<std::byte>> destination;
    RawBytes body{};
    std::size_t done = 0;  // of the body
    std::size_t rest() const { return frame.bytes - done; }
  };

  bool push_front();
  static void keep(Outgoing& out);
  bool pull_some(Receiver& receiver);
  std::size_t receive(std::span<std::byte> into);
  std::size_t receive_into_buffer();
  std::size_t receive_body();
  void consume(Receiver& receiver);
  void begin(Receiver& receiver);
  std::span<std::byte> room_for_body();
  std::size_t buffered() const { return end_ - begin_; }

  Descriptor socket_;
  bool local_, open_ = true;
  std::deque<Outgoing> outgoing_;
  std::uint64_t given_ = 0, sent_ = 0;  // frames
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what of it was not consumed
  std::optional<Incoming> incoming_;
  std::deque<Descriptor> files_;  // that have come
};

}  // namespace hearsay::sockets
