#include "runtime/sockets/connection.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace hearsay::sockets {
namespace {

constexpr std::size_t buffer_bytes = 65536;
constexpr std::size_t longest_body = std::size_t{1} << 48;
constexpr std::size_t files_at_once = 8;

ConnectionLost lost() { return ConnectionLost(std::generic_category().message(errno)); }

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Room for the control message that carries files.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(files_at_once * sizeof(int))> bytes{};

  void carry(int file, msghdr& message) {
    message.msg_control = bytes.data();
    message.msg_controllen = CMSG_SPACE(sizeof file);
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
  }
  static void take(msghdr& message, std::deque<Descriptor>& files) {
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int file = -1;
        std::memcpy(&file, CMSG_DATA(head) + i * sizeof file, sizeof file);
        files.emplace_back(file);
      }
    }
  }
};

}  // namespace

Connection::Connection(Descriptor socket, bool local)
    : socket_(std::move(socket)), local_(local), buffer_(buffer_bytes) {}

std::uint64_t Connection::send(const Frame& frame, std::span<const std::byte> body, Descriptor file) {
  constexpr std::size_t short_body = 4096;  // a copy costs less than to be without it when a channel goes
  outgoing_.push_back({.frame = frame, .body = body, .file = std::move(file)});
  ++given_;
  if (outgoing_.size() == 1) push();
  if (!outgoing_.empty() && body.size() <= short_body) keep(outgoing_.back());
  return given_;
}

void Connection::keep(Outgoing& out) {
  if (!out.kept.empty()) return;
  out.kept.assign(out.body.begin(), out.body.end());
  out.body = out.kept;
}

void Connection::keep_unsent() {
  for (Outgoing& out : outgoing_) keep(out);
}

void Connection::push() {
  while (!outgoing_.empty() && push_front()) {
    outgoing_.pop_front();
    ++sent_;
  }
}

/// True when the first frame has gone.
bool Connection::push_front() {
  Outgoing& out = outgoing_.front();
  const std::size_t whole = sizeof out.frame + out.body.size();
  while (out.done < whole) {
    const auto header = std::as_bytes(std::span(&out.frame, 1)).subspan(std::min(out.done, sizeof out.frame));
    const auto body = out.body.subspan(out.done > sizeof out.frame ? out.done - sizeof out.frame : 0);
    std::array<iovec, 2> parts{iovec{const_cast<std::byte*>(header.data()), header.size()},
                               iovec{const_cast<std::byte*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    Control control;
    if (out.file && out.done == 0) control.carry(out.file.number(), message);
    const ssize_t gone = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (gone < 0 && would_wait()) return false;
    if (gone < 0) throw lost();
    out.done += static_cast<std::size_t>(gone);
  }
  return true;
}

/// 0: nothing is there.
std::size_t Connection::receive(std::span<std::byte> into) {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control;
  if (local_) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
  }
  const ssize_t came = ::recvmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (came < 0 && would_wait()) return 0;
  if (came < 0) throw lost();
  if (local_) Control::take(message, files_);
  if (files_.size() > files_at_once) throw ConnectionLost("it sends files that nobody wants");
  if (came == 0) throw ConnectionLost("it has closed its end");
  return static_cast<std::size_t>(came);
}

bool Connection::pull(Receiver& receiver) {
  try {
    return pull_some(receiver);
  } catch (const ConnectionLost&) {
    open_ = false;
    throw;
  }
}

void Connection::forget(std::uint32_t channel) {
  for (Outgoing& out : outgoing_) {
    if (out.frame.channel != channel || out.body.empty() || !out.kept.empty()) continue;
    if (out.done == 0) out.frame.bytes = 0;
    out.kept.assign(out.frame.bytes, std::byte{});
    out.body = out.kept;
  }
  if (!incoming_ || incoming_->frame.channel != channel || !incoming_->destination) return;
  incoming_->destination.reset();
  incoming_->body.resize(incoming_->done);
}

bool Connection::pull_some(Receiver& receiver) {
  constexpr std::size_t at_once = std::size_t{4} << 20;  // others want their turn
  std::size_t pulled = 0;
  while (pulled < at_once) {
    const bool long_body = buffered() == 0 && incoming_ && incoming_->rest() >= buffer_.size();
    const std::size_t came = long_body ? receive_body() : receive_into_buffer();
    if (came == 0) break;
    pulled += came;
    consume(receiver);
    if (!long_body && end_ < buffer_.size()) break;  // there was room for more
  }
  return pulled > 0;
}

std::size_t Connection::receive_into_buffer() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
  end_ = buffered();
  begin_ = 0;
  const std::size_t came = receive(std::span(buffer_).subspan(end_));
  end_ += came;
  return came;
}

/// Straight to where it is to lie.
std::size_t Connection::receive_body() {
  const std::size_t came = receive(room_for_body());
  incoming_->done += came;
  return came;
}

/// What a frame says of its length is believed a megabyte at a time.
std::span<std::byte> Connection::room_for_body() {
  constexpr std::size_t first_room = std::size_t{1} << 20;
  Incoming& in = *incoming_;
  if (in.destination) return in.destination->subspan(in.done);
  if (in.body.size() == in.done)
    in.body.resize(std::min<std::size_t>(in.frame.bytes, std::max(first_room, 2 * in.done)));
  return std::span(in.body).subspan(in.done);
}

void Connection::consume(Receiver& receiver) {
  for (;;) {
    if (!incoming_) {
      if (buffered() < sizeof(Frame)) return;
      begin(receiver);
    }
    while (incoming_->rest() > 0 && buffered() > 0) {
      const auto room = room_for_body();
      const std::size_t part = std::min(room.size(), buffered());
      std::memcpy(room.data(), buffer_.data() + begin_, part);
      begin_ += part;
      incoming_->done += part;
    }
    if (incoming_->rest() > 0) return;
    Incoming whole = std::move(*incoming_);
    incoming_.reset();
    Descriptor file;
    if (whole.frame.kind == FrameKind::window && !files_.empty()) {
      file = std::move(files_.front());
      files_.pop_front();
    }
    receiver.arrived(whole.frame, std::move(whole.body), std::move(file));
  }
}

void Connection::begin(Receiver& receiver) {
  Incoming in{.frame = {}, .destination = std::nullopt};
  std::memcpy(&in.frame, buffer_.data() + begin_, sizeof in.frame);
  begin_ += sizeof in.frame;
  if (in.frame.kind < FrameKind::message || in.frame.kind > FrameKind::goodbye || in.frame.bytes > longest_body)
    throw ConnectionLost("it sends what no member sends");
  in.destination = receiver.destination_of(in.frame);
  if (in.destination && in.destination->size() != in.frame.bytes)
    throw ConnectionLost("it sends more than there is room for");
  incoming_ = std::move(in);
}

}  // namespace hearsay::sockets
