#include "runtime/sockets/window.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"

namespace hearsay::sockets {
namespace {

std::atomic_ref<std::uint64_t> word_of(std::span<std::byte> bytes) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(bytes.data()));
}

}  // namespace

Window::Window(std::shared_ptr<Network> members, std::size_t bytes, const MemoryUse& use, const Network::Idle& idle)
    : Channel(std::move(members)),
      own_(bytes),
      others_(static_cast<std::size_t>(network().ranks())),
      on_one_host_(true),
      others_go_on_(use.deaths == Deaths::others_go_on) {
  {
    const auto alone = network().lock();  // who comes meanwhile is told once
    open();
    for (int target = 0; target < network().ranks(); ++target)
      if (target != network().rank()) tell_of_memory(target);
    if (!network().on_one_host()) on_one_host_ = false;
  }
  other(network().rank()).bytes = bytes;
  other(network().rank()).is_open = true;
  for (int from = 0; from < network().founders(); ++from)  // nobody waits for those who come later
    network().wait_until(
        [&] {
          if (other(from).is_open) return true;
          network().require(from);
          return !network().is_here(from);
        },
        idle);
  if (others_go_on_) network().go_on_without_the_dead();  // not before: who has not come would be waited for in vain
}

void Window::tell_of_memory(int target) {
  network().send(target, frame(FrameKind::window, own_.bytes().size()), {},
                 network().shares_host(target) ? own_.file() : Descriptor());
}

void Window::met(int rank) {
  if (!network().shares_host(rank)) on_one_host_ = false;
  tell_of_memory(rank);
}

void Window::meet(int from, std::size_t bytes, Descriptor file) {
  if (network().shares_host(from)) other(from).here.emplace(std::move(file), bytes);
  other(from).bytes = bytes;
  other(from).is_open = true;
}

void Window::require_within(int target, std::size_t offset, std::size_t bytes) {
  const std::size_t room = other(target).bytes;
  if (offset > room || bytes > room - offset)
    throw std::logic_error("window: a write beyond the end of the target's memory");
}

/// Memory of a member that shares this host, or of this one.
std::span<std::byte> Window::bytes_at(int target, std::size_t offset, std::size_t bytes) {
  const auto memory = target == network().rank() ? own_.bytes() : other(target).here->bytes();
  return memory.subspan(offset, bytes);
}

/// Whether a member's memory is this host's: it is read and written without a frame.
bool Window::is_near(int target) { return target == network().rank() || other(target).here.has_value(); }

void Window::put(std::span<const std::byte> bytes, int target, std::size_t offset) {
  if (bytes.empty() || !other(target).is_open) return;
  require_within(target, offset, bytes.size());
  if (is_near(target)) {
    std::memcpy(bytes_at(target, offset, bytes.size()).data(), bytes.data(), bytes.size());
    return;
  }
  const auto alone = network().lock();
  ++other(target).begun;
  network().send(target, frame(FrameKind::put, offset, bytes.size()), bytes);
}

void Window::store(const std::uint64_t& word, int target, std::size_t offset) {
  if (!other(target).is_open) return;
  require_within(target, offset, sizeof word);
  if (is_near(target)) {
    word_of(bytes_at(target, offset, sizeof word)).store(word, std::memory_order_release);
    return;
  }
  const auto alone = network().lock();
  ++other(target).begun;
  network().send(target, frame(FrameKind::put, offset, sizeof word), std::as_bytes(std::span(&word, 1)));
}

// One question at a time: what is begun while it is under way is asked about afterwards.
bool Window::flush(int target) {
  if (!other(target).is_open || is_near(target)) return true;
  const auto alone = network().lock();
  Other& there = other(target);
  if (there.done == there.begun) return true;
  if (there.asked == there.done) {
    there.asked = there.begun;
    network().send(target, frame(FrameKind::flush, there.asked));
  }
  return false;
}

// On one host nothing comes over sockets that could not wait for a millisecond but what is waited for elsewhere.
void Window::sync() {
  constexpr std::chrono::milliseconds between_polls{1};
  const auto now = std::chrono::steady_clock::now();
  if (!on_one_host_ || now - polled_ >= between_polls) {
    polled_ = now;
    network().poll();
    if (!others_go_on_) network().require_all();
  }
  std::atomic_thread_fence(std::memory_order_acquire);
}

// As that of MPI's windows: heads and tails travel together.
int Window::patience() const { return 64; }

std::optional<std::uint64_t> Window::peek(int target, std::size_t offset) {
  if (!other(target).is_open) return std::nullopt;
  require_within(target, offset, sizeof(std::uint64_t));
  if (is_near(target)) return word_of(bytes_at(target, offset, sizeof(std::uint64_t))).load(std::memory_order_acquire);
  const auto alone = network().lock();
  Other& there = other(target);
  if (there.asks_for_word && !there.word) return std::nullopt;
  there.asks_for_word = true;
  const auto answer = std::exchange(there.word, std::nullopt);
  network().send(target, frame(FrameKind::get, offset));
  return answer;
}

/// What others write must lie in this memory; what they say of it is not believed.
std::span<std::byte> Window::own_bytes(std::uint64_t offset, std::uint64_t bytes) {
  const auto memory = own_.bytes();
  if (offset > memory.size() || bytes > memory.size() - offset)
    throw ConnectionLost("it writes beyond the end of this process's memory");
  return memory.subspan(offset, bytes);
}

std::optional<std::span<std::byte>> Window::destination_of(int /*from*/, const Frame& frame) {
  if (frame.kind == FrameKind::put) return own_bytes(frame.number, frame.bytes);
  if (frame.bytes > 0) throw ConnectionLost("it sends a message where there is memory only");
  return std::nullopt;
}

void Window::arrived(int from, const Frame& come, RawBytes /*body*/, Descriptor file) {
  Other& there = other(from);
  switch (come.kind) {
    case FrameKind::window:
      if (there.is_open) throw ConnectionLost("it says twice how much memory it has");
      return meet(from, come.number, std::move(file));
    case FrameKind::put:
      return std::atomic_thread_fence(std::memory_order_release);
    case FrameKind::flush:
      network().send(from, frame(FrameKind::flushed, come.number));
      return;
    case FrameKind::flushed:
      if (come.number != there.asked) throw ConnectionLost("it answers what was not asked");
      there.done = come.number;
      return;
    case FrameKind::get:
      if (come.number % sizeof(std::uint64_t) != 0) throw ConnectionLost("it asks for a word where there is none");
      network().send(from, frame(FrameKind::word, word_of(own_bytes(come.number, sizeof(std::uint64_t))).load()));
      return;
    case FrameKind::word:
      there.word = come.number;
      return;
    case FrameKind::message:
    case FrameKind::goodbye:
      throw ConnectionLost("it sends a message where there is memory only");
  }
}

}  // namespace hearsay::sockets
