// Ctrl-C inside a long native loop.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "base/platform.hpp"

namespace multimargin::inline base {

// Called with the GIL released. poll(work) costs one addition until about a million elementary operations have passed.
// Then it reads the clock, and at most every 50 ms takes the GIL and asks Python for pending signals. A pending signal
// is thrown (nanobind::python_error, KeyboardInterrupt for Ctrl-C), so call it only while the caller's arrays are
// feasible.
class Interrupt {
 public:
  void poll(std::int64_t work) {
    work_ += work;
    if (work_ < kWorkPerLook) return;
    work_ = 0;
    look();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kWorkPerLook = 1000000;
  static constexpr std::chrono::milliseconds kPeriod{50};

  void look() {
    if (Clock::now() < next_) return;
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    next_ = Clock::now() + kPeriod;
  }

  std::int64_t work_ = 0;
  Clock::time_point next_{};
};

}  // namespace multimargin::base
