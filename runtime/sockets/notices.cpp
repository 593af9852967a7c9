#include "runtime/sockets/notices.hpp"

#include "runtime/sockets/messages.hpp"

namespace hearsay::sockets {

Notices::Notices(std::shared_ptr<Network> network) : Channel(network), network_(std::move(network)) { open(); }

// A frame's number: twice the notice, and one more where it is posted.
void Notices::tell(Notice notice, bool posted) {
  const auto alone = network_->lock();
  const auto number = 2 * static_cast<std::uint64_t>(notice) + (posted ? 1 : 0);
  for (int rank = 0; rank < network_->ranks(); ++rank) {
    if (rank != network_->rank()) network_->send(rank, frame(FrameKind::message, number));
  }
  note(network_->rank(), notice, posted);
  network_->poll();
}

void Notices::note(int rank, Notice notice, bool posted) {
  if (posted)
    posted_.insert({rank, notice});
  else
    posted_.erase({rank, notice});
}

bool Notices::has_posted(int rank, Notice notice) {
  const auto alone = network_->lock();
  network_->poll();
  return posted_.contains({rank, notice});
}

void Notices::await_all(const std::function<void()>& idle) { Messages(network_).barrier(idle); }

void Notices::arrived(int from, const Frame& frame, RawBytes /*body*/, Descriptor /*file*/) {
  const bool known = frame.kind == FrameKind::message && frame.bytes == 0 &&
                     frame.number / 2 <= static_cast<std::uint64_t>(Notice::has_ended);
  if (!known) throw ConnectionLost("it posts a notice that nobody knows");
  note(from, static_cast<Notice>(frame.number / 2), frame.number % 2 != 0);
}

}  // namespace hearsay::sockets
