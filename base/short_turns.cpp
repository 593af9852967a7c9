// Linux from 6.12 on: a thread's own time slice is an attribute of the ordinary policy, and who wakes with a shorter
// one and an earlier virtual deadline goes first. Stoica and Abdel-Wahab, Earliest eligible virtual deadline first,
// 1995. It takes no more of the core than its share.
#include "base/short_turns.hpp"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace hearsay {
namespace {

#ifdef __linux__
/// The kernel's struct sched_attr, first version. Its header cannot stand beside the C library's.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(Attributes) == 48);
#endif

}  // namespace

void prefer_short_turns() {
#if defined(__linux__) && defined(SYS_sched_setattr)
  constexpr std::uint64_t shortest_ns = 100'000;  // that the kernel grants
  Attributes attributes{.nice = getpriority(PRIO_PROCESS, 0), .runtime_ns = shortest_ns};
  syscall(SYS_sched_setattr, 0, &attributes, 0);  // refused: as before
#endif
}

}  // namespace hearsay
