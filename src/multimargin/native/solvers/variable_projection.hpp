// The variable projection method for a balanced block: Serafini, Zanghirati & Zanni, Section 3.
#pragma once

#include "base/interrupt.hpp"
#include "base/reduce.hpp"
#include "solvers/balanced_set.hpp"
#include "solvers/sparse_product.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

struct ProjectionOptions {
  double eps;  // stop when the violation at the best bias <= eps
  Index max_iter;
  double rho;    // the first projection parameter
  Index period;  // l~: the two rules for rho alternate within so many steps
  double flat;   // rho does not change if |K d|^2 <= flat |d|^2
  double seconds;  // ends about when so much time has passed

  void check() const {
    if (!(eps >= 0.0 && max_iter >= 0)) throw std::invalid_argument("eps and max_iter must not be negative");
    if (!(rho > 0.0 && period >= 1 && flat >= 0.0))
      throw std::invalid_argument("rho and period must be positive, and flat not negative");
  }
};

// Minimises  1/2 <Delta, K Delta> + <G_old, Delta>  over the balanced set, z = alpha_old + Delta:
//
//     zbar = P(z - rho G),  d = zbar - z,  z <- z + theta d,  theta = min(1, -<d, G> / <d, K d>) (1 in the first step)
//     rho  <- <d, K d> / |K d|^2  while l mod period < period / 2,   else |d|^2 / <d, K d>
//
// G includes the best bias of z: <d, G> does not depend on the bias, because d sums to 0, but less is lost to rounding.
// K d is K zbar - K z or a product with d itself, whichever vector has fewer non-zeros: bounded samples do not move, so
// near the end only free samples have d_i != 0. If rounding makes <d, K d> <= 0, rho does not change.
template <class T>
class VariableProjection {
 public:
  VariableProjection(const Subproblem<T>& block, BalancedSet set, const ProjectionOptions& options, int n_threads)
      : b_(block), set_(std::move(set)), o_(options), product_(block, n_threads),
        interrupt_(options.seconds), rho_(options.rho), start_(block.alpha, block.alpha + block.q),
        G_start_(block.G, block.G + block.q),
        target_(start_), d_(start_), Kd_(start_), Kz_(start_) {}

  IterationResult run() {
    multiply(b_.alpha, Kz_.data());
    IterationResult result{0, centre()};
    try {
      while (!(result.closeness <= o_.eps) && result.iterations < o_.max_iter && !interrupt_.late() &&
             step(result.iterations + 1)) {
        ++result.iterations;
        result.closeness = centre();
        interrupt_.poll(b_.q);
      }
    } catch (...) {
      keep_if_lower(result.closeness);
      throw;
    }
    keep_if_lower(result.closeness);
    result.closeness = measure_balanced(set_, b_.G, b_.alpha, b_.q).violation;
    return result;
  }

 private:
  // Computes G afresh. Unless the block is solved, goes back to the start if the dual there is lower: the first step,
  // which has no line search, may have led up.
  void keep_if_lower(double closeness) {
    const double change = refresh();
    if (closeness <= o_.eps || change <= 0.0) return;
    std::copy(start_.begin(), start_.end(), b_.alpha);
    std::copy(G_start_.begin(), G_start_.end(), b_.G);
  }

  void multiply(const double* v, double* out) {
    product_(v, out);
    interrupt_.poll(product_.work());
  }

  // Adds the best bias to G; returns the violation.
  double centre() {
    const BalancedMeasure measure = measure_balanced(set_, b_.G, b_.alpha, b_.q);
    for (Index i = 0; i < b_.q; ++i) b_.G[i] += measure.bias;
    return measure.violation;
  }

  // Steps 2 to 5. Returns false if z cannot be moved any more: it is optimal to rounding.
  bool step(Index l) {
    for (Index i = 0; i < b_.q; ++i) target_[i] = b_.alpha[i] - rho_ * b_.G[i];
    set_.project(target_.data(), target_.data());
    for (Index i = 0; i < b_.q; ++i) d_[i] = target_[i] - b_.alpha[i];
    multiply_direction();
    const double dd = sum_over(b_.q, [&](Index i) { return d_[i] * d_[i]; });
    const double dKd = sum_over(b_.q, [&](Index i) { return d_[i] * Kd_[i]; });
    const double KdKd = sum_over(b_.q, [&](Index i) { return Kd_[i] * Kd_[i]; });
    const double slope = sum_over(b_.q, [&](Index i) { return d_[i] * b_.G[i]; });
    const double theta = l == 1 || dKd <= 0.0 ? 1.0 : std::min(1.0, -slope / dKd);
    if (!(theta > 0.0) || dd == 0.0) return false;
    move(theta);
    if (dKd > 0.0 && KdKd > o_.flat * dd) rho_ = 2 * (l % o_.period) < o_.period ? dKd / KdKd : dd / dKd;
    return true;
  }

  void multiply_direction() {
    const auto other = [q = b_.q](const std::vector<double>& v) { return q - std::count(v.begin(), v.end(), 0.0); };
    if (other(d_) <= other(target_)) {
      multiply(d_.data(), Kd_.data());
    } else {
      multiply(target_.data(), Kd_.data());
      for (Index i = 0; i < b_.q; ++i) Kd_[i] -= Kz_[i];
    }
  }

  void move(double theta) {
    set_.move_towards(target_.data(), theta, b_.alpha);
    for (Index i = 0; i < b_.q; ++i) {
      b_.G[i] += theta * Kd_[i];
      Kz_[i] += theta * Kd_[i];
    }
  }

  // Computes G = G_old + K (alpha - alpha_old) from scratch; returns the change of the dual.
  double refresh() {
    for (Index i = 0; i < b_.q; ++i) d_[i] = b_.alpha[i] - start_[i];
    multiply(d_.data(), Kd_.data());
    const double bias = measure_balanced(set_, G_start_.data(), start_.data(), b_.q).bias;
    const double change = sum_over(b_.q, [&](Index i) { return d_[i] * (G_start_[i] + bias + 0.5 * Kd_[i]); });
    for (Index i = 0; i < b_.q; ++i) b_.G[i] = G_start_[i] + Kd_[i];
    return change;
  }

  Subproblem<T> b_;
  BalancedSet set_;
  ProjectionOptions o_;
  SparseProduct<T> product_;
  Interrupt interrupt_;
  double rho_;
  std::vector<double> start_, G_start_, target_, d_, Kd_, Kz_;  // (q,) each
};

}  // namespace multimargin::solvers
