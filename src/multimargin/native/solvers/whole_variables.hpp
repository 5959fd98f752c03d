// All variables of a small block, class after class, so that loops over its samples run in vector registers.
//
// The descents over larger blocks list the variables that matter (listed_variables.hpp). A block of some hundred
// samples has few enough for a look at all of them, which finds better steps.
#pragma once

#include "base/eight.hpp"
#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

// What the rounding of kernel values leaves uncertain, of K_ii: a curvature K_ii + K_jj - 2 K_ij, and an eigenvalue of
// a block of some hundred samples.
template <class T>
inline constexpr double kLeastCurvature = std::is_same_v<T, Fixed16> ? 4e-5 : 1e-6;
template <class T>
inline constexpr double kLeastEigenvalue = std::is_same_v<T, double> ? 1e-10 : std::is_same_v<T, float> ? 1e-6 : 3e-4;

template <class Machine, class T>
class WholeVariables {
 public:
  WholeVariables(const Subproblem<T>& block, const Machine& machine)
      : b_(block), machine_(machine), stride_((b_.q + Eight::count - 1) / Eight::count * Eight::count),
        G_(b_.m * stride_), rise_(b_.m * stride_), fall_(Machine::kTwoSided ? b_.m * stride_ : 0), least_(stride_),
        diagonal_(stride_), worst_(stride_), own_(stride_) {
    for (Index i = 0; i < b_.q; ++i) {
      least_[i] = kActive * b_.C[i];
      diagonal_[i] = b_.diag[i];
      own_[i] = static_cast<std::int32_t>(b_.y[i] * stride_ + i);
    }
    load();
  }

  const Subproblem<T>& block() const { return b_; }
  Index samples() const { return b_.q; }
  Index classes() const { return b_.m; }
  Index stride() const { return stride_; }  // of the arrays of a class: the samples, and some that never move
  const T* kernel_row(Index i) const { return b_.K + i * b_.K_stride; }
  double diagonal(Index i) const { return diagonal_[i]; }
  const double* diagonal() const { return diagonal_.data(); }

  // Of sample i and class r: the gradient, and how far the variable may rise and fall.
  double gradient(Index i, Index r) const { return G_[place(i, r)]; }
  double rise(Index i, Index r) const { return rise_[place(i, r)]; }
  double fall(Index i, Index r) const { return Machine::kTwoSided ? fall_[place(i, r)] : kInfinity; }
  bool may_rise(Index i, Index r) const { return rise(i, r) > least_[i]; }
  bool may_fall(Index i, Index r) const { return fall(i, r) > least_[i]; }
  // The same of all samples.
  const double* gradients(Index r) const { return G_.data() + r * stride_; }
  const double* rises(Index r) const { return rise_.data() + r * stride_; }
  const double* falls(Index r) const { return Machine::kTwoSided ? fall_.data() + r * stride_ : nullptr; }

  // Measures all samples; returns the largest violation, NaN if a gradient is no number.
  double measure() {
    return measure_all(G_.data(), rise_.data(), fall_.data(), least_.data(), own_.data(), b_.m, stride_,
                       worst_.data());
  }
  double violation(Index i) const { return worst_[i]; }  // when all were measured last

  // Changes the variable by `change`; the gradient follows by add_row.
  void change(Index i, Index r, double change) {
    const double noise = kSmallest * b_.C[i];
    double& rise = rise_[place(i, r)];
    rise = rise - change > noise ? rise - change : 0.0;
    if constexpr (Machine::kTwoSided) {
      double& fall = fall_[place(i, r)];
      fall = fall + change > noise ? fall + change : 0.0;
    }
  }
  void add_row(Index i, Index r, double change) {
    add_scaled(kernel_row(i), b_.q, change, G_.data() + r * stride_);
  }
  void add_two_rows(Index i, double a, Index j, double b, Index r) {
    base::add_two_rows(kernel_row(i), kernel_row(j), a, b, b_.q, G_.data() + r * stride_);
  }

  // Takes alpha and G of the block.
  void load() {
    for (Index i = 0; i < b_.q; ++i)
      for (Index r = 0; r < b_.m; ++r) {
        const double alpha = b_.alpha[i * b_.m + r], C = b_.C[i];
        const bool own = r == b_.y[i];
        G_[place(i, r)] = b_.G[i * b_.m + r];
        rise_[place(i, r)] = Machine::rise(alpha, own, C);
        if constexpr (Machine::kTwoSided) fall_[place(i, r)] = Machine::fall(alpha, own, C);
      }
  }

  // Writes alpha and G back to the block.
  void store() const {
    for (Index i = 0; i < b_.q; ++i) {
      double* alpha = b_.alpha + i * b_.m;
      for (Index r = 0; r < b_.m; ++r) {
        alpha[r] = r == b_.y[i] ? b_.C[i] - rise(i, r) : 0.0 - rise(i, r);
        b_.G[i * b_.m + r] = gradient(i, r);
      }
      machine_.settle(b_.y[i], b_.C[i], b_.m, alpha);
    }
  }

 private:
  Index place(Index i, Index r) const { return r * stride_ + i; }

  static MULTIMARGIN_CLONES double measure_all(const double* G, const double* rise, const double* fall,
                                               const double* least, const std::int32_t* own, Index m, Index stride,
                                               double* worst) {
    Eight most(0.0), rubbish(0.0);  // NaN if a gradient is no number: comparisons alone would pass over it
    for (Index i = 0; i < stride; i += Eight::count) {
      const Eight at_least(least + i), never(kInfinity), none(-kInfinity);
      Eight top = none, low = never;
      for (Index r = 0; r < m; ++r) {
        const Index at = r * stride + i;
        const Eight g(G + at);
        rubbish += g - g;
        low = smaller(if_above(Eight(rise + at), at_least, g, never), low);
        if constexpr (Machine::kTwoSided)
          top = larger(if_above(Eight(fall + at), at_least, g, none), top);
        else
          top = larger(g, top);
      }
      const Eight violation = Machine::worst(top, low, Eight::gathered(G, own + i));
      violation.store(worst + i);
      most = larger(violation, most);
    }
    double largest = 0.0;
    for (Index l = 0; l < Eight::count; ++l) largest = worse_of(largest, most[l] + rubbish[l]);
    return largest;
  }

  Subproblem<T> b_;
  const Machine& machine_;
  Index stride_;
  std::vector<double> G_, rise_, fall_;           // class after class
  std::vector<double> least_, diagonal_, worst_;  // of the samples
  std::vector<std::int32_t> own_;                 // where the gradient of the own class is
};

}  // namespace multimargin::solvers
