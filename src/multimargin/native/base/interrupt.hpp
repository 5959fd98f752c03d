// Ctrl-C and time limits inside a long native loop.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <limits>

#include "base/platform.hpp"

namespace multimargin::inline base {

// Called with the GIL released. poll(work) costs one addition until about a million elementary operations have passed.
// Then it reads the clock, and at most every 50 ms takes the GIL and asks Python for pending signals. A pending signal
// is thrown (nanobind::python_error, KeyboardInterrupt for Ctrl-C), so call it only while the caller's arrays are
// feasible. The same look at the clock finds out whether more than `seconds` have passed.
class Interrupt {
 public:
  explicit Interrupt(double seconds = std::numeric_limits<double>::infinity()) : seconds_(seconds) {
    if (std::isnan(seconds)) throw std::invalid_argument("seconds must be a number: no time is later than NaN");
  }

  // Whether the time was over at the last look.
  bool late() const { return late_; }

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
    const Clock::time_point now = Clock::now();
    late_ = late_ || std::chrono::duration<double>(now - start_).count() >= seconds_;
    if (now < next_) return;
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    next_ = Clock::now() + kPeriod;
  }

  std::int64_t work_ = 0;
  double seconds_;
  bool late_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_{};
};

}  // namespace multimargin::base
