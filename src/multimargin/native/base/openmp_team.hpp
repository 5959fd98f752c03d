// The threads that OpenMP keeps for the calling thread.
//
// OpenMP ends the process if it cannot start a thread, for example because a limit of memory leaves no room for the
// thread's stack. So before a team grows, as many threads as it lacks are started and ended here: if that fails, an
// exception is thrown. If not, the C library keeps their stacks, and OpenMP's threads get them.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
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

}  // namespace multimargin::base
