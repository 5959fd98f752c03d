// The threads that OpenMP keeps for the calling thread.
//
// OpenMP ends the process if it cannot start a thread, for example because a limit of memory leaves no room for the
// thread's stack. So before a team grows, as many threads as it lacks are started and ended here: if that fails, an
// exception is thrown. If not, the C library keeps their stacks, and OpenMP's threads get them.
//
// All parallel regions of the module are calls of in_team.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define MULTIMARGIN_TSAN 1
#endif
#endif

namespace multimargin::inline base {

// Threads of the calling thread's last team. GCC's OpenMP ends those that the next team does not need.
inline thread_local int team_size = 1;

// Throws std::bad_alloc if the system cannot start so many threads at once.
inline void try_threads(std::size_t count) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  const auto end = [&] {
    done = true;
    done.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  threads.reserve(count);
  try {
    while (threads.size() < count) threads.emplace_back([&done] { done.wait(false); });
  } catch (const std::system_error&) {
    end();
    throw std::bad_alloc();
  } catch (...) {
    end();
    throw;
  }
  end();
}

// To be called before a parallel region of so many threads. Throws std::bad_alloc if they cannot be started.
inline void gather_team(int threads) {
  if (threads > team_size) try_threads(static_cast<std::size_t>(threads - team_size));
  team_size = threads;
}

// Ends the idle threads that OpenMP keeps for the calling thread; the next parallel region starts new ones. False if
// they are still there.
inline bool end_threads() {
#if !defined(_OPENMP)
  return true;
#elif _OPENMP >= 201811 || (defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 9)  // GCC had it before OpenMP 5.0
  team_size = 1;
  return omp_pause_resource_all(omp_pause_hard) == 0;
#else
  return false;
#endif
}

// Tells ThreadSanitizer, which does not know OpenMP, of the barriers of a parallel region: a thread sees what the
// calling thread did before the region, and the calling thread sees afterwards what each thread did in it. Two threads
// of the region are not ordered by that. LLVM's OpenMP could tell it by its tool Archer, but only until the first
// end_threads: a hard pause ends OpenMP's tools, and nothing starts them again.
class RegionOrder {
 public:
  RegionOrder() { release(&begin_); }
  void enter() { acquire(&begin_); }
  void leave() { release(&end_); }
  void is_over() { acquire(&end_); }

 private:
#ifdef MULTIMARGIN_TSAN
  static void acquire(char* place) { __tsan_acquire(place); }
  static void release(char* place) { __tsan_release(place); }
#else
  static void acquire(char*) {}
  static void release(char*) {}
#endif
  char begin_ = 0, end_ = 0;  // only their addresses are used, one for each barrier
};

// Calls work(t, team) in every thread t of a team of so many threads, or of fewer if OpenMP has no more. The first
// exception is rethrown after all threads have returned. A team of one is the calling thread.
template <class Work>
void in_team([[maybe_unused]] int threads, Work work) {
#ifdef _OPENMP
  if (threads > 1) {
    gather_team(threads);
    std::mutex lock;
    std::exception_ptr error;
    RegionOrder order;
#pragma omp parallel num_threads(threads)
    {
      order.enter();
      try {
        work(omp_get_thread_num(), omp_get_num_threads());
      } catch (...) {
        const std::lock_guard hold(lock);
        if (!error) error = std::current_exception();
      }
      order.leave();
    }
    order.is_over();
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  work(0, 1);
}

}  // namespace multimargin::base
