// Proximal steps over a small block, for blocks over which descent creeps: each solves the model
//
//     min over D   <G, D> + 1/2 <D, K D> + sum_i |D_i|^2 / 2 sigma_i     such that alpha + D is feasible
//
// by Newton's method, and moves to alpha + D. Finding out which variables are at their bounds is what descent creeps
// for; a model finds many of them in each of its steps. Its dual has the unknowns beta (q, m), with V = K beta:
//
//     phi = 1/2 <beta, V> - <G + V, D> - sum_i |D_i|^2 / 2 sigma_i,     gradient R = V - K D,
//     D = P(alpha - sigma (G + V)) - alpha,     P the projection on the feasible rows.
//
// P is piecewise linear. On the face, the variables that it leaves free, Newton's direction x - (beta - D) solves
//
//     (K + 1 / sigma) x + lambda = R,     sum_r x_ir = 0 in every sample i     (face_system.hpp).
//
// engines/cpu/proximal_newton.py has the same for all samples, with a factor in place of K.
#pragma once

#include "base/interrupt.hpp"
#include "solvers/face_system.hpp"
#include "solvers/model_search.hpp"
#include "solvers/newton_pairs.hpp"
#include "solvers/whole_variables.hpp"

namespace multimargin::solvers {

template <class Machine>
class ProximalNewton {
 public:
  explicit ProximalNewton(const Subproblem<double>& block)
      : b_(block), size_(b_.q * b_.m), next_(kSteps / 2 * work_of_step(0, 0)) {}

  // Whether such steps have begun, and have not failed.
  bool is_going() const { return is_going_; }

  // Begins if the work that was done pays for such steps. Descent frees too many variables, and the first model too
  // few: the systems in between usually are of a size between the two.
  bool is_due(const WholeVariables<Machine, double>& variables, Index work) {
    if (is_going_) return true;
    if (work < next_) return false;
    variables.store();
    if (share_of_costs() < kLeastShare) {
      next_ = 2 * work;
      return false;
    }
    start();
    find_face();
    const double between = static_cast<double>(count_free(variables)) * static_cast<double>(system_.unknowns());
    const auto unknowns = static_cast<Index>(std::sqrt(between));
    const Index due = last_ + kSteps / 2 * work_of_step(2 * unknowns, unknowns);
    next_ = std::min(due, 2 * work);
    return is_going_ = work >= due && unknowns <= kMostUnknowns;
  }

  // Moves the block to the solution of a model around it. Whether the dual has fallen; adds the work.
  bool step(double violation, double eps, Interrupt& interrupt, Index& work) {
    const bool moved = minimise(std::max(kShareOfViolation * violation, kShareOfEps * eps), interrupt, work) && take();
    if (!moved) {
      length_ *= kShorter;
      is_going_ = false;
      last_ = work;
      next_ = 2 * work;
    } else if (steps_ <= kFewSteps) {
      length_ *= kLonger;
    }
    return moved;
  }

 private:
  static constexpr double kLength = 12.0, kLonger = 4.0, kShorter = 1.0 / 16.0;  // of sigma, in units of C
  static constexpr double kLongest = 1e7;  // of sigma K_ii: rounding of V is as many times larger in alpha
  static constexpr int kFewSteps = 5, kMostSteps = 100;                          // of Newton's method
  static constexpr double kShareOfViolation = 0.1, kShareOfEps = 0.1;            // how exactly a model is solved
  static constexpr double kLeastShare = 0.3;  // of C that coefficients must have
  static constexpr Index kMostUnknowns = 1024;                                   // of a system
  static constexpr Index kSteps = 45;  // that a block usually takes in all; descent does half of that before
  // In the time of a multiply-add: a step, and its sums and projections. A system takes longer than it says itself.
  static constexpr Index kWorkOfStep = 500'000, kWorkOfEntry = 50, kSystem = 2;

  // Coefficients of the support vectors, in units of C. If few are at their bounds, C is no measure for lengths.
  double share_of_costs() const {
    double weight = 0.0, costs = 0.0;
    for (Index i = 0; i < b_.q; ++i) {
      const double own = b_.alpha[i * b_.m + b_.y[i]];
      if (own > 0.0) weight += own, costs += b_.C[i];
    }
    return weight > 0.0 ? std::min(weight / costs, 1.0) : 1.0;
  }

  // The unknowns of the face that descent has reached.
  Index count_free(const WholeVariables<Machine, double>& v) const {
    Index unknowns = 0;
    for (Index i = 0; i < b_.q; ++i) {
      Index count = 0;
      for (Index r = 0; r < b_.m; ++r) count += v.may_rise(i, r) && v.may_fall(i, r);
      unknowns += std::max<Index>(count - 1, 0);
    }
    return unknowns;
  }

  Index work_of_step(Index free, Index unknowns) const {
    return kWorkOfStep + kSystem * FaceSystem::work(unknowns) + 3 * free * b_.q + kWorkOfEntry * size_;
  }

  // Newton's method from beta = 0, until |R| <= eps. False if a system has no solution, or the time is over.
  bool minimise(double eps, Interrupt& interrupt, Index& work) {
    ModelLine<Machine> line = start();
    multiply([&](Index k) { return point_[k] - b_.alpha[k]; }, KD_.data());
    for (steps_ = 0; steps_ < kMostSteps && !interrupt.late(); ++steps_) {
      double error = 0.0;
      for (Index k = 0; k < size_; ++k) R_[k] = V_[k] - KD_[k], error = worse_of(error, std::abs(R_[k]));
      if (error <= eps) return true;
      if (!find_direction()) return false;
      const Index done = work_of_step(system_.variables(), system_.unknowns());
      work += done;
      interrupt.poll(done);
      const LineSlope slope{inner(R_, step_), inner(V_, step_), inner(W_, step_)};
      if (!(slope.first < 0.0)) return false;  // rounding, or a kernel that is not positive semidefinite
      const double t = find_root(slope, [&](double t) { return -line.point(t, next_point_.data()); });
      multiply([&](Index k) { return next_point_[k] - point_[k]; }, R_.data());
      for (Index k = 0; k < size_; ++k) beta_[k] += t * step_[k], V_[k] += t * W_[k], KD_[k] += R_[k];
      std::swap(point_, next_point_);
    }
    return false;
  }

  // beta = 0, and the point there; the line is through it.
  ModelLine<Machine> start() {
    sigma_.resize(b_.q), product_.resize(b_.q), face_.reset(new bool[size_]);
    for (auto* rows : {&KD_, &R_, &point_, &next_point_, &step_}) rows->resize(size_);
    for (auto* rows : {&beta_, &V_, &W_}) rows->assign(size_, 0.0);
    for (Index i = 0; i < b_.q; ++i) sigma_[i] = std::min(length_ * b_.C[i], kLongest / b_.diag[i]);
    ModelLine<Machine> line({b_.q, b_.m, b_.alpha, b_.G, sigma_.data(), b_.y, b_.C}, V_.data(), W_.data());
    line.point(0.0, point_.data());
    return line;
  }

  // The variables that the projection to the point leaves free.
  void find_face() {
    system_.clear();
    for (Index i = 0; i < b_.q; ++i)
      Machine::face(point_.data() + i * b_.m, b_.y[i], b_.C[i], b_.m, face_.get() + i * b_.m);
    for_free_rows(face_.get(), b_.q, b_.m, true, [&](Index i, const bool* free, Index) {
      classes_.clear();
      for (Index r = 0; r < b_.m; ++r)
        if (free[r]) classes_.push_back(static_cast<std::int32_t>(r));
      system_.add(i, classes_.data(), std::ssize(classes_));
    });
  }

  // Newton's direction, and W = K times it; false if there is none.
  bool find_direction() {
    find_face();
    if (system_.unknowns() > kMostUnknowns) return false;
    const auto right = [&](Index i, Index r) { return R_[i * b_.m + r]; };
    const double* x = system_.solve(b_, [&](Index i) { return 1.0 / sigma_[i]; }, right);
    if (!x) return false;
    std::fill(step_.begin(), step_.end(), 0.0);
    for (const auto& [i, first, count] : system_.samples())
      for (Index k = first; k < first + count; ++k) step_[i * b_.m + system_.class_of(k)] = x[k];
    multiply([&](Index k) { return step_[k]; }, W_.data());
    for (Index k = 0; k < size_; ++k) {
      step_[k] -= beta_[k] - (point_[k] - b_.alpha[k]);
      W_[k] -= R_[k];
    }
    return true;
  }

  // out = K x, x(k) the entries of (q, m), most of which are zero.
  template <class Entry>
  void multiply(Entry x, double* out) {
    for (Index r = 0; r < b_.m; ++r) {
      std::fill(product_.begin(), product_.end(), 0.0);
      Index before = -1;  // a row that waits for another
      for (Index i = 0; i < b_.q; ++i) {
        if (x(i * b_.m + r) == 0.0) continue;
        if (before < 0) {
          before = i;
          continue;
        }
        add_two_rows(row(before), row(i), x(before * b_.m + r), x(i * b_.m + r), b_.q, product_.data());
        before = -1;
      }
      if (before >= 0) add_scaled(row(before), b_.q, x(before * b_.m + r), product_.data());
      for (Index j = 0; j < b_.q; ++j) out[j * b_.m + r] = product_[j];
    }
  }
  const double* row(Index i) const { return b_.K + i * b_.K_stride; }

  // Moves the block to the model's solution if the dual is lower there.
  bool take() {
    double change = 0.0;
    for (Index k = 0; k < size_; ++k) change += (b_.G[k] + 0.5 * KD_[k]) * (point_[k] - b_.alpha[k]);
    if (!(change < 0.0)) return false;
    std::copy(point_.begin(), point_.end(), b_.alpha);
    for (Index k = 0; k < size_; ++k) b_.G[k] += KD_[k];
    return true;
  }

  static double inner(const std::vector<double>& a, const std::vector<double>& b) {
    return dot(a.data(), b.data(), std::ssize(a));
  }
  static MULTIMARGIN_CLONES double dot(const double* a, const double* b, Index n) {
    return sum_over(n, [=](Index k) { return a[k] * b[k]; });
  }

  Subproblem<double> b_;
  Index size_;
  double length_ = kLength;
  bool is_going_ = false;      // until a step fails
  Index last_ = 0, next_;      // work at the last failure, and at which the price is looked at
  Index steps_ = 0;            // of the last model
  std::vector<double> sigma_;  // of the samples; the others are (q, m)
  std::vector<double> beta_, V_, KD_, W_, R_, point_, next_point_, step_;
  std::vector<double> product_;  // of one class
  std::vector<std::int32_t> classes_;
  std::unique_ptr<bool[]> face_;
  FaceSystem system_;
};

}  // namespace multimargin::solvers
