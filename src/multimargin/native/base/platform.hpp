// What differs between compilers and systems: run-time dispatch over instruction sets, forced inlining, OpenMP threads.
// Without any of them the same code runs on one thread with baseline SIMD.
#pragma once

// The standard headers that the rooms use throughout; rarer ones are included where they are used.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/openmp_team.hpp"

// Functions written for one instruction set with its intrinsics. Call them only if the machine has it.
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define MULTIMARGIN_X86 1
#include <immintrin.h>
#define MULTIMARGIN_AVX2 __attribute__((target("avx2")))
#define MULTIMARGIN_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define MULTIMARGIN_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#else
#define MULTIMARGIN_X86 0
#endif

// MULTIMARGIN_CLONES before a leaf function compiles it once per instruction set; the loader picks the best (needs the
// ifunc of glibc; Clang has no clones of function templates). Functions that it calls must be MULTIMARGIN_INLINE, or
// they stay baseline. Sanitizers cannot run before ifunc resolvers: define MULTIMARGIN_NO_CLONES for them.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(MULTIMARGIN_NO_CLONES)
#define MULTIMARGIN_HAS_CLONES 1
#define MULTIMARGIN_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MULTIMARGIN_HAS_CLONES 0
#define MULTIMARGIN_CLONES
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define MULTIMARGIN_INLINE __forceinline
#define MULTIMARGIN_INLINE_LAMBDA
#else
#define MULTIMARGIN_INLINE inline __attribute__((always_inline))
#define MULTIMARGIN_INLINE_LAMBDA __attribute__((always_inline))  // after the parameters of a lambda
#endif

#if defined(__GNUC__) || defined(__clang__)
#define MULTIMARGIN_PREFETCH(address) __builtin_prefetch(address)
#else
#define MULTIMARGIN_PREFETCH(address) ((void)0)
#endif

// For a loop that waits for another core.
#if MULTIMARGIN_X86
#define MULTIMARGIN_PAUSE() _mm_pause()
#else
#define MULTIMARGIN_PAUSE() ((void)0)
#endif

namespace multimargin::inline base {

using Index = std::int64_t;

// The clone of MULTIMARGIN_CLONES functions that runs on this machine.
inline const char* instruction_set() {
#if MULTIMARGIN_HAS_CLONES
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
#endif
  return "baseline";
}

inline bool has_openmp() {
#ifdef _OPENMP
  return true;
#else
  return false;
#endif
}

inline int max_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// With less arithmetic than this, the barrier of a parallel region costs more than a second thread saves.
inline constexpr double parallel_flops = 2e6;

inline int worthwhile_threads(int n_threads, double flops) { return flops < parallel_flops ? 1 : n_threads; }

// Runs tasks 0..n_tasks-1 on at most n_threads threads. Each thread calls make_worker() for its own worker (with its
// own buffers) and gives it one task after the other, in ascending order. Tasks must write to disjoint memory; then the
// result does not depend on which thread ran which task. The first exception of any worker is rethrown after all
// threads have stopped.
template <class MakeWorker>
void parallel_tasks(Index n_tasks, int n_threads, MakeWorker make_worker) {
  if (n_tasks <= 0) return;
  std::atomic<Index> next{0};
  in_team(static_cast<int>(std::min<Index>(n_threads, n_tasks)), [&](int, int) {
    try {
      auto worker = make_worker();
      for (Index task = next++; task < n_tasks; task = next++) worker(task);
    } catch (...) {
      next = n_tasks;  // nothing is left for the others
      throw;
    }
  });
}

// The same for `count` items in ranges of `step`: calls work(begin, end) for each range.
template <class Work>
void parallel_ranges(Index count, Index step, int n_threads, Work work) {
  parallel_tasks((count + step - 1) / step, n_threads, [&] {
    return [&](Index task) { work(task * step, std::min((task + 1) * step, count)); };
  });
}

}  // namespace multimargin::base
