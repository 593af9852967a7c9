#pragma once
// Loops compiled twice, for every processor of the architecture and for those with AVX2; the running one is asked
// which.
//
// Both forms come from the same source and give the same bits: AVX2 without FMA, so no multiplication and addition
// become one. Asked by hand: the linker's way (ifunc, GCC's target_clones) runs before ThreadSanitizer does.

namespace hearsay {

/// Whether loops for AVX2 run here; with BMI and POPCNT, which every processor that has AVX2 has, but not every
/// hypervisor shows.
inline bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("popcnt") != 0;
#else
  return false;
#endif
}

#if defined(__x86_64__)
template <class Loop>
[[gnu::target("avx2,bmi,popcnt")]] auto run_with_avx2(const Loop& loop) {
  return loop();
}
#endif

/// loop(), which is a lambda with __attribute__((always_inline)): whatever it calls must be inlined too, or is compiled
/// for every processor only.
template <class Loop>
auto in_vector_code(const Loop& loop) {
#if defined(__x86_64__)
  if (has_avx2()) return run_with_avx2(loop);
#endif
  return loop();
}

}  // namespace hearsay
