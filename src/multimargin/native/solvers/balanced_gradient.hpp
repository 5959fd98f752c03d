// The feasible set of a balanced block, for the projected gradient method.
#pragma once

#include <utility>

#include "base/reduce.hpp"
#include "solvers/balanced_set.hpp"
#include "solvers/sparse_product.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// As RowwiseBlock (projected_gradient.hpp). Rows have one value, and closeness is the violation at the best bias.
template <class T>
class BalancedBlock {
 public:
  using Value = T;

  BalancedBlock(const Subproblem<T>& block, BalancedSet box, int n_threads)
      : b_(block), box_(std::move(box)), product_(block.K, block.K_stride, block.q, n_threads) {}

  const Subproblem<T>& block() const { return b_; }

  double closeness() const { return measure_balanced(box_, b_.G, b_.alpha, b_.q).violation; }

  // max_i g_i / C_i^2 with g_i = (high - alpha) [-G]_+ + (alpha - low) [G]_+ at the best bias.
  double relative_gain() const {
    const double bias = measure_balanced(box_, b_.G, b_.alpha, b_.q).bias;
    return max_over(b_.q, [=, this](Index i) {
      const double g = b_.G[i] + bias, low = box_.low()[i], high = box_.high()[i];
      return (g < 0.0 ? (b_.alpha[i] - high) * g : (b_.alpha[i] - low) * g) / ((high - low) * (high - low));
    });
  }

  void project(double rho, double* target) {
    for (Index i = 0; i < b_.q; ++i) target[i] = b_.alpha[i] - rho * b_.G[i];
    box_.project(target, target);
  }

  // <G, d>. d sums to zero: G may be taken at its best bias, where that of free samples is small, and rounded less.
  double slope(const double* G, const double* d) const {
    const double bias = measure_balanced(box_, G, b_.alpha, b_.q).bias;
    return sum_over(b_.q, [=](Index i) { return (G[i] + bias) * d[i]; });
  }

  void multiply(const double* d, double* Kd) { product_(d, Kd); }

  void move_towards(const double* target, double t) const { box_.move_towards(target, t, b_.alpha); }

 private:
  Subproblem<T> b_;
  BalancedSet box_;
  SparseProduct<T> product_;
};

}  // namespace multimargin::solvers
