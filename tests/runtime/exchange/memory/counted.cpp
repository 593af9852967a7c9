#include "tests/runtime/exchange/memory/counted.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace hearsay::test {
namespace {

/// Pieces outlive the threads that asked for them, so accounts do, too.
struct Account {
  std::atomic<std::int64_t> now{0};
  std::int64_t most = 0;  // the thread's own
};
thread_local Account* own_account = nullptr;

/// In front of every piece.
struct Head {
  Account* owner;
  std::size_t bytes;
};
constexpr std::size_t least_alignment = std::max(sizeof(Head), alignof(std::max_align_t));

void* counted(std::size_t bytes, std::size_t alignment) {
  alignment = std::max(alignment, least_alignment);
  const std::size_t whole = (bytes + 2 * alignment - 1) / alignment * alignment;
  auto* const raw = static_cast<std::byte*>(std::aligned_alloc(alignment, whole));
  if (raw == nullptr) throw std::bad_alloc();
  std::construct_at(reinterpret_cast<Head*>(raw + alignment) - 1, Head{.owner = own_account, .bytes = bytes});
  if (Account* const own = own_account) {
    const auto more = static_cast<std::int64_t>(bytes);
    own->most = std::max(own->most, own->now.fetch_add(more) + more);
  }
  return raw + alignment;
}

void give_back(void* piece, std::size_t alignment) noexcept {
  if (piece == nullptr) return;
  const Head head = *(static_cast<Head*>(piece) - 1);
  if (head.owner != nullptr) head.owner->now -= static_cast<std::int64_t>(head.bytes);
  std::free(static_cast<std::byte*>(piece) - std::max(alignment, least_alignment));
}

}  // namespace

void begin_account() { own_account = new Account(); }  // never freed

std::size_t most_on_account() { return static_cast<std::size_t>(own_account->most); }

}  // namespace hearsay::test

// NOLINTBEGIN(misc-new-delete-overloads): array forms call these
void* operator new(std::size_t bytes) { return hearsay::test::counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return hearsay::test::counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* piece) noexcept { hearsay::test::give_back(piece, 1); }
void operator delete(void* piece, std::size_t) noexcept { hearsay::test::give_back(piece, 1); }
void operator delete(void* piece, std::align_val_t alignment) noexcept {
  hearsay::test::give_back(piece, static_cast<std::size_t>(alignment));
}
void operator delete(void* piece, std::size_t, std::align_val_t alignment) noexcept {
  hearsay::test::give_back(piece, static_cast<std::size_t>(alignment));
}
// NOLINTEND(misc-new-delete-overloads)
