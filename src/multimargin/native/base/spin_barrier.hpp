// A barrier for threads that meet every few microseconds: too often to sleep in between.
//
// A waiting thread spins for about ten microseconds. If the others have not arrived by then, one of them has probably
// lost its core to another process. So the waiting thread goes to sleep and frees a core.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  // Returns once all threads have called it. All threads then see what any of them wrote before.
  void wait() {
    const int round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      round_.notify_all();
      return;
    }
    for (int looks = 0; looks < kLooks; ++looks) {
      if (round_.load(std::memory_order_acquire) != round) return;
      MULTIMARGIN_PAUSE();
    }
    round_.wait(round, std::memory_order_acquire);
  }

 private:
  static constexpr int kLooks = 2000;

  int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> round_{0};
};

}  // namespace multimargin::base
