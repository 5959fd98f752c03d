// A balanced block, for the projected gradient method.
#pragma once

#include "base/reduce.hpp"
#include "solvers/balanced_set.hpp"
#include "solvers/sparse_product.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// As RowwiseBlock (projected_gradient.hpp). Rows have one value. The closeness is the violation at the best bias.
template <class T>
class BalancedBlock {
 public:
  using Value = T;

  BalancedBlock(const Subproblem<T>& block, BalancedSet set, int n_threads)
      : b_(block), set_(std::move(set)), product_(block, n_threads) {}

  const Subproblem<T>& block() const { return b_; }

  double closeness() const { return measure_balanced(set_, b_.G, b_.alpha, b_.q).violation; }

  // max_i g_i / C_i^2 with g_i = (high - alpha) [-G]_+ + (alpha - low) [G]_+ at the best bias.
  double relative_gain() const {
    const double bias = measure_balanced(set_, b_.G, b_.alpha, b_.q).bias;
    return max_over(b_.q, [=, this](Index i) {
      const double g = b_.G[i] + bias, low = set_.low()[i], high = set_.high()[i];
      return (g < 0.0 ? (b_.alpha[i] - high) * g : (b_.alpha[i] - low) * g) / ((high - low) * (high - low));
    });
  }

  void project(double rho, double* target) {
    for (Index i = 0; i < b_.q; ++i) target[i] = b_.alpha[i] - rho * b_.G[i];
    set_.project(target, target);
  }

  // <G, d>. Because d sums to zero, the best bias may be added to G first: then G is small at free samples, and less is
  // lost to rounding.
  double slope(const double* G, const double* d) const {
    const double bias = measure_balanced(set_, G, b_.alpha, b_.q).bias;
    return sum_over(b_.q, [=](Index i) { return (G[i] + bias) * d[i]; });
  }

  void multiply(const double* d, double* Kd) { product_(d, Kd); }

  void move_towards(const double* target, double t) const { set_.move_towards(target, t, b_.alpha); }

 private:
  Subproblem<T> b_;
  BalancedSet set_;
  SparseProduct<T> product_;
};

}  // namespace multimargin::solvers
