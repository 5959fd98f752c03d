// Momentum between the sweeps of a descent on a quadratic function f with gradient G: a sweep starts from
//
//     alpha + beta (alpha - alpha_before),    where the gradient is  G + beta (G - G_before)  without a product.
//
// This point may be infeasible; a sweep that visits every sample makes it feasible again. If a sweep without momentum
// leaves the share 1 - q of f - f_min, the best beta is (1 - sqrt(q)) / (1 + sqrt(q)), and a sweep then leaves the
// share rho = 1 - sqrt(q). So beta = rho / (2 - rho) with the observed rho, and at most what Nesterov's sequence allows
// for an unknown q. After a sweep that did not lower f, the sequence starts again.
#pragma once

#include "base/platform.hpp"

namespace multimargin::solvers {

class Momentum {
 public:
  Momentum(double* alpha, double* G, Index size) : alpha_(alpha), G_(G), size_(size) {}

  // Moves to where the next sweep starts, if the last sweep visited all samples. Returns whether alpha may be
  // infeasible now.
  bool extrapolate(bool all_visited) {
    if (alpha_before_.empty() || !all_visited) {
      alpha_before_.assign(alpha_, alpha_ + size_);
      G_before_.assign(G_, G_ + size_);
      length_ = 1.0;
      fall_ = last_fall_ = 0.0;
      return false;
    }
    const double beta = next_beta();
    for (std::size_t k = 0; k < size_; ++k) {
      const double a = alpha_[k], g = G_[k];
      alpha_[k] += beta * (a - alpha_before_[k]);
      G_[k] += beta * (g - G_before_[k]);
      alpha_before_[k] = a;
      G_before_[k] = g;
    }
    return beta > 0.0;
  }

  // After a sweep: f(alpha_before) - f(alpha) = -1/2 <G_before + G, alpha - alpha_before>.
  void measure() {
    double sum = 0.0;
    for (std::size_t k = 0; k < size_; ++k) sum += (G_before_[k] + G_[k]) * (alpha_before_[k] - alpha_[k]);
    before_last_ = last_fall_;
    last_fall_ = fall_;
    fall_ = 0.5 * sum;
  }

  // Goes back to where the last sweep would have started without momentum.
  void undo() {
    std::copy(alpha_before_.begin(), alpha_before_.end(), alpha_);
    std::copy(G_before_.begin(), G_before_.end(), G_);
  }

 private:
  double next_beta() {
    if (!(fall_ > 0.0)) {
      length_ = 1.0;
      return 0.0;
    }
    const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * length_ * length_)), most = (length_ - 1.0) / next;
    length_ = next;
    const double rho =
        before_last_ > 0.0 ? std::min(1.0, std::sqrt(fall_ / before_last_)) : 1.0;  // per sweep, from the last two
    return std::min(most, rho / (2.0 - rho));
  }

  double *alpha_, *G_;
  std::size_t size_;
  std::vector<double> alpha_before_, G_before_;
  double length_ = 1.0;                                      // of Nesterov's sequence
  double fall_ = 0.0, last_fall_ = 0.0, before_last_ = 0.0;  // of f in the last three sweeps
};

}  // namespace multimargin::solvers
