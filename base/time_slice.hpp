#pragma once
// A thread's time slice, which Linux takes as a wish from 6.12 on: who wakes with a shorter one and an earlier virtual
// deadline goes first. Stoica and Abdel-Wahab, Earliest eligible virtual deadline first, 1995. It takes no more of the
// core than its share.
#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace hearsay {

/// Asks the kernel for short time slices of the calling thread: when it wakes it runs at once, for a moment, although
/// other threads want the core as well. For a thread that mostly sleeps and that others wait for: where ranks share
/// cores, a packet needs several of its slices, each of which else comes after those of all who compute, 3 ms and more.
/// Nothing happens where the kernel does not know of it.
inline void prefer_short_time_slices() {
#if defined(__linux__) && defined(SYS_sched_setattr)
  // The kernel's struct sched_attr, first version. Its header cannot stand beside the C library's.
  struct Attributes {
    std::uint32_t size = sizeof(Attributes);
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
  };
  static_assert(sizeof(Attributes) == 48);
  constexpr std::uint64_t shortest_ns = 100'000;  // that the kernel grants
  Attributes attributes{.nice = getpriority(PRIO_PROCESS, 0), .runtime_ns = shortest_ns};
  syscall(SYS_sched_setattr, 0, &attributes, 0);  // refused: as before
#endif
}

}  // namespace hearsay
