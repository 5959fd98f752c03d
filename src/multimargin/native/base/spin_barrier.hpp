// Meetings of threads every few microseconds: too often to sleep in between.
//
// A thread that waits looks again and again for some ten microseconds. By then somebody has lost its core to another
// process; the one that waits goes to sleep, so that there is a core for it.
#pragma once

#include <atomic>

#include "base/platform.hpp"

namespace multimargin::inline base {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  // Returns when all threads have called it; what they wrote before is seen by all.
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
