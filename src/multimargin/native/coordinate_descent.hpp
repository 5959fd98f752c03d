// Block coordinate descent: one sample after the other, each by its own (mostly exact) update.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "block.hpp"
#include "gradient.hpp"
#include "interrupt.hpp"
#include "random.hpp"
#include "reduce.hpp"

namespace multimargin {

struct DescentResult {
  Index sweeps, updates;
  double violation;  // largest of any row, on the final gradient
};

// Minimises the block subproblem (block.hpp), given the diagonal of K, the start and its gradient;
// the result is in alpha and G. Visits the rows in shuffled sweeps and gives those with a violation
// above a threshold to Machine::minimise (CS01, Figure 2, step 2, in sweeps as in Blondel et al.,
// Algorithm 1). Ends when a sweep over all rows at threshold eps updates nothing (then violation
// <= eps, unless float64 cannot resolve the steps) or after max_sweeps.
//
// The threshold is eps or, staged, starts at half the largest violation and is multiplied by 0.3 a
// stage, down to eps. A stage is one sweep over all rows, then sweeps over those that were not
// found exactly optimal (most rows with alpha_i = 0 are), until one updates nothing, or after
// kStageSweeps: the violation of a class with a small z_r hardly falls under frank-wolfe and must
// not hold up all other rows.
template <class Machine, class T>
class CoordinateDescent {
 public:
  CoordinateDescent(const Block<T>& block, const double* diag, Machine machine, std::uint64_t seed)
      : b_(block),
        diag_(diag),
        machine_(std::move(machine)),
        random_(seed),
        stride_(padded(block.q)),
        local_(static_cast<std::size_t>(stride_ * block.m)),
        row_(static_cast<std::size_t>(3 * block.m)),
        classes_(static_cast<std::size_t>(block.m)) {
    for (Index i = 0; i < b_.q; ++i)
      for (Index r = 0; r < b_.m; ++r) local_[static_cast<std::size_t>(r * stride_ + i)] = b_.G[i * b_.m + r];
  }

  // Also when an interrupt leaves run() half way: alpha and G always belong together.
  ~CoordinateDescent() {
    for (Index i = 0; i < b_.q; ++i) gather(i, b_.G + i * b_.m);
  }

  CoordinateDescent(const CoordinateDescent&) = delete;
  CoordinateDescent& operator=(const CoordinateDescent&) = delete;

  DescentResult run(double eps, Index max_sweeps, bool staged) {
    DescentResult result{0, 0, largest_violation()};
    double threshold = staged ? std::max(eps, 0.5 * result.violation) : eps;
    while (result.violation > eps && result.sweeps < max_sweeps) {
      const Index last = staged ? std::min(max_sweeps, result.sweeps + kStageSweeps) : result.sweeps + 1;
      const Index updates = stage(threshold, last, result);
      if (threshold <= eps && updates == 0) break;
      threshold = std::max(eps, 0.3 * threshold);
    }
    result.violation = largest_violation();
    return result;
  }

 private:
  static constexpr Index kStageSweeps = 100;

  // Rows a power of two apart would share cache sets when a sample's classes are gathered.
  static Index padded(Index q) {
    if (q < 64) return q;
    const Index lines = (q + 7) / 8;
    return 8 * (lines | 1);
  }

  void gather(Index i, double* row) const {
    const double* g = local_.data() + i;
    for (Index r = 0; r < b_.m; ++r) row[r] = g[r * stride_];
  }

  MULTIMARGIN_CLONES double violation(Index i) const {
    return Machine::violation(local_.data() + i, stride_, b_.alpha + i * b_.m, b_.y[i], b_.C[i], b_.m);
  }

  double largest_violation() const {
    double worst = 0.0;
    for (Index i = 0; i < b_.q; ++i) worst = worse_of(worst, violation(i));
    return worst;
  }

  // Sweeps until `last` of them were made in all; returns the updates of the one over all rows.
  Index stage(double threshold, Index last, DescentResult& result) {
    order_.resize(static_cast<std::size_t>(b_.q));
    std::iota(order_.begin(), order_.end(), Index{0});
    const Index over_all = sweep(threshold, result);
    Index updates = over_all;
    while (updates > 0 && result.sweeps < last) updates = sweep(threshold, result);
    return over_all;
  }

  // Visits the rows of order_ and keeps there those that were not optimal; returns the updates.
  Index sweep(double threshold, DescentResult& result) {
    random_.shuffle(order_.data(), static_cast<Index>(order_.size()));
    Index updates = 0;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const Index i = order_[k];
      interrupt_.poll(b_.m);
      const double before = violation(i);
      if (before > threshold) updates += update(i);
      if (before > 0.0) order_[kept++] = i;
    }
    order_.resize(kept);
    ++result.sweeps;
    result.updates += updates;
    return updates;
  }

  // The one-sample solve and its step K[i, :] delta_r in the local gradient, for the classes that
  // changed. A change below the machine's resolution is dropped and does not count: repeating it
  // would never end.
  bool update(Index i) {
    const Index m = b_.m;
    double* alpha = b_.alpha + i * m;
    double* next = row_.data() + m;
    double* delta = next + m;
    std::copy(alpha, alpha + m, next);
    gather(i, row_.data());
    machine_.minimise(row_.data(), diag_[i], b_.y[i], b_.C[i], next);
    Index count = 0;
    double largest = 0.0;
    for (Index r = 0; r < m; ++r) {
      const double change = next[r] - alpha[r];
      if (change == 0.0) continue;
      largest = std::max(largest, std::abs(change));
      classes_[static_cast<std::size_t>(count)] = r;
      delta[count++] = change;
    }
    if (!(largest > Machine::resolution(row_.data(), diag_[i], b_.C[i], m))) return false;
    std::copy(next, next + m, alpha);
    add_scaled_row(b_.K + i * b_.K_stride, b_.q, classes_.data(), delta, count, local_.data(), stride_);
    interrupt_.poll(count * b_.q);
    return true;
  }

  Block<T> b_;
  const double* diag_;
  Machine machine_;
  Random random_;
  Interrupt interrupt_;
  Index stride_;                // of local_
  std::vector<double> local_;   // the gradient, class-major: (m, q)
  std::vector<Index> order_;    // rows of the next sweep
  std::vector<double> row_;     // three rows of m: gradient, new alpha, changes
  std::vector<Index> classes_;  // that changed
};

}  // namespace multimargin
