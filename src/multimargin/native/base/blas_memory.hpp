// Memory for calls of BLAS and LAPACK at the same time.
//
// OpenBLAS has a work area for each call that is running, and gets another one from the system when more are running
// than ever before. If the system has none, it asks again without an end. So before a call that is the first of so many
// at the same time, as much memory is mapped and given back here: if that fails, an exception is thrown.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace multimargin::inline base::blas {

// Throws std::bad_alloc if the system has not so many bytes.
inline void try_mapping(std::size_t bytes) {
#if defined(__unix__) || defined(__APPLE__)
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  munmap(memory, bytes);
#else
  (void)bytes;
#endif
}

// Lives as long as a call of BLAS or LAPACK runs.
class Running {
 public:
  Running() : count_(++running_) {
    const int missing = count_ - most_;
    if (missing <= 0) return;
    try {
      try_mapping(missing * kArea);
    } catch (...) {
      --running_;
      throw;
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    for (int most = most_; most < count_ && !most_.compare_exchange_weak(most, count_);) {
    }
    --running_;
  }

 private:
  static constexpr std::size_t kArea = std::size_t{33} << 20;  // an area of SciPy's wheels has 32 MiB
  inline static std::atomic<int> running_{0}, most_{0};
  int count_;  // calls that were running when this one began, itself included
};

}  // namespace multimargin::base::blas
