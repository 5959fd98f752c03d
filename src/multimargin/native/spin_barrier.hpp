// Meetings of threads every few microseconds: too often to sleep in between.
//
// A thread that waits looks again and again for about a microsecond's work of the others; then it offers its core to
// whoever needs it, so that a busy machine goes on.
#pragma once

#include <atomic>
#include <thread>

#include "platform.hpp"

namespace multimargin {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  // Returns when all threads have called it; what they wrote before is seen by all.
  void wait() {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int looks = 0; round_.load(std::memory_order_acquire) == round; ++looks) {
      if (looks < kLooks)
        MULTIMARGIN_PAUSE();
      else
        std::this_thread::yield();
    }
  }

 private:
  static constexpr int kLooks = 2000;

  int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

}  // namespace multimargin
