// The projected gradient method for a block, Niu & Yuan, Algorithm 3.
#pragma once

#include "base/interrupt.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "solvers/sparse_product.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

struct GradientOptions {
  double eps;  // stop when the block's closeness (the largest g_i / c_i, or the violation) <= eps
  Index max_iter;
  double rho_min, rho_max;   // bounds of the step length
  Index memory;              // h: a step length uses up to h + 1 secants (s, y)
  Index patience;            // L: failures to improve on the best value before f_ref is lowered
  std::string initial_step;  // "ell": C^2 / max g (NY), "projected": 1 / |P(w - F) - w|_inf
  double seconds;            // ends about when so much time has passed

  void check() const {
    const auto require = [](bool holds, const char* message) {
      if (!holds) throw std::invalid_argument(message);
    };
    require(eps >= 0.0 && max_iter >= 0, "eps and max_iter must not be negative");
    require(0.0 < rho_min && rho_min <= rho_max, "0 < rho_min <= rho_max must hold");
    require(memory >= 0 && patience >= 1, "memory must be at least 0 and patience at least 1");
    require(initial_step == "ell" || initial_step == "projected", "initial_step must be 'projected' or 'ell'");
  }
};

// A block whose rows each have a feasible set of their own, with the operations that the method needs.
template <class Machine, class T>
class RowwiseBlock {
 public:
  using Value = T;

  RowwiseBlock(const Subproblem<T>& block, Machine machine, int n_threads)
      : b_(block), machine_(std::move(machine)), product_(block, n_threads),
        work_(static_cast<std::size_t>(2 * kTogether * block.m)) {}

  const Subproblem<T>& block() const { return b_; }

  // The largest Machine::progress.
  double closeness() {
    double worst = 0.0;
    Index i = 0;
    if constexpr (kTogether > 0)
      for (; i + kTogether <= b_.q; i += kTogether)
        worst = worse_of(worst, Machine::progress_together(b_.G + i * b_.m, b_.alpha + i * b_.m, b_.y + i, b_.C + i,
                                                           b_.m, work_.data()));
    const auto progress = [this](const RowMeasure& row, Index k) { return Machine::progress(row, b_.C[k], b_.m); };
    return worse_of(worst, largest(i, progress));
  }

  // max_i g_i / C_i^2.
  double relative_gain() const {
    return largest(0, [this](const RowMeasure& row, Index i) { return row.gain / (b_.C[i] * b_.C[i]); });
  }

  // target = P(alpha - rho G).
  void project(double rho, double* target) {
    std::copy(b_.alpha, b_.alpha + b_.q * b_.m, target);
    Index i = 0;
    if constexpr (kTogether > 0) {
      double steps[kTogether];
      std::fill_n(steps, kTogether, rho);
      for (; i + kTogether <= b_.q; i += kTogether)
        Machine::project_together(b_.G + i * b_.m, steps, b_.y + i, b_.C + i, b_.m, target + i * b_.m, work_.data());
    }
    for (; i < b_.q; ++i) machine_.project(b_.G + i * b_.m, rho, b_.y[i], b_.C[i], b_.m, target + i * b_.m);
  }

  // <G, d>. If rows of d sum to zero, the maximum of every row of G is subtracted first: the rounding error is then
  // relative to the differences in G, not to G.
  double slope(const double* G, const double* d) const {
    double total = 0.0;
    for (Index i = 0; i < b_.q; ++i) {
      const double *g = G + i * b_.m, *di = d + i * b_.m;
      const double top = Machine::kSumsToZero ? max_of(g, b_.m) : 0.0;
      total += sum_over(b_.m, [=](Index r) { return (g[r] - top) * di[r]; });
    }
    return total;
  }

  void multiply(const double* d, double* Kd) { product_(d, Kd); }

  // alpha <- alpha + t (target - alpha), 0 < t < 1.
  void move_towards(const double* target, double t) const {
    for (Index i = 0; i < b_.q; ++i)
      Machine::move_towards(target + i * b_.m, t, b_.y[i], b_.C[i], b_.m, b_.alpha + i * b_.m);
  }

 private:
  static constexpr Index kTogether = kRowsTogether<Machine>;

  // The largest value(measures of row i, i) from row `first` on.
  template <class Row>
  double largest(Index first, Row value) const {
    double worst = 0.0;
    for (Index i = first; i < b_.q; ++i) {
      const Index k = i * b_.m;
      worst = worse_of(worst, value(Machine::measure(b_.G + k, b_.alpha + k, b_.y[i], b_.C[i], b_.m), i));
    }
    return worst;
  }

  Subproblem<T> b_;
  Machine machine_;
  SparseProduct<T> product_;
  std::vector<double> work_;  // of rows in lanes
};

// Solves the subproblem in place; alpha is NY's w, G is NY's F. Projected gradient steps with the multi-step
// Barzilai-Borwein length rho = sum <s,s> / sum <s,y> over the newest secants of positive curvature, and Dai &
// Fletcher's nonmonotone line search (NY, Algorithm 3, Steps 0-5). f is measured from its value at the start. Choices
// that Algorithm 3 leaves open: f of Step 5 is that of the new point; the reference value is +infinity until `patience`
// failures in a row and is compared with the projected point; best and candidate values follow the accepted points. The
// length of the first step is a guess, so that step always has a line search: without it, a start near the optimum
// could be lost.
template <class Problem>
class ProjectedGradient {
 public:
  ProjectedGradient(Problem problem, const GradientOptions& options)
      : problem_(std::move(problem)), b_(problem_.block()), o_(options), interrupt_(options.seconds),
        size_(b_.q * b_.m),
        alpha_start_(b_.alpha, b_.alpha + size_), G_start_(b_.G, b_.G + size_), best_(alpha_start_), target_(size_),
        d_(size_), Kd_(size_) {}

  IterationResult run() {
    IterationResult result{0, problem_.closeness()};
    double rho = first_step();
    while (result.closeness > o_.eps) {
      if (result.iterations == o_.max_iter || interrupt_.late()) {
        return_best();
        result.closeness = problem_.closeness();
        break;
      }
      if (!step(rho)) break;
      ++result.iterations;
      if (result.iterations % kRefresh == 0) refresh();
      rho = next_step();
      record();
      result.closeness = problem_.closeness();
      try {
        interrupt_.poll(b_.q * b_.q * b_.m);
      } catch (...) {
        return_best();
        throw;
      }
    }
    return result;
  }

 private:
  static constexpr Index kRefresh = 100;  // iterations between gradients computed from scratch

  // Step 0: the inverse of max g_i / C_i^2, or of |P(w - F) - w|_inf.
  double first_step() {
    double scale = 0.0;
    if (o_.initial_step == "ell") {
      scale = problem_.relative_gain();
    } else {
      aim(1.0);
      for (double x : d_) scale = std::max(scale, std::abs(x));
    }
    return std::clamp(1.0 / scale, o_.rho_min, o_.rho_max);
  }

  // Step 2: target = P(w - rho F) and d = target - w.
  void aim(double rho) {
    problem_.project(rho, target_.data());
    for (std::size_t k = 0; k < size_; ++k) d_[k] = target_[k] - b_.alpha[k];
  }

  // Kd = K d; returns <d, K d>.
  double curvature() {
    problem_.multiply(d_.data(), Kd_.data());
    return sum_over(static_cast<Index>(size_), [&](Index k) { return d_[k] * Kd_[k]; });
  }

  // Steps 2 and 3. False when w cannot be moved any more: it is optimal to rounding.
  bool step(double rho) {
    aim(rho);
    const double dd = sum_over(static_cast<Index>(size_), [&](Index k) { return d_[k] * d_[k]; });
    if (dd == 0.0) return false;
    const double dKd = curvature();
    const double a = problem_.slope(b_.G, d_.data());
    double t = 1.0;
    const bool search = secants_.empty() || f_ + a + 0.5 * dKd > f_ref_;
    if (search && dKd > 0.0) t = std::min(1.0, -a / dKd);
    if (!(t > 0.0)) return false;
    move(t);
    f_ += t * a + 0.5 * t * t * dKd;
    secants_.push_back({t * t * dd, t * t * dKd});
    if (static_cast<Index>(secants_.size()) - 1 > o_.memory) secants_.erase(secants_.begin());
    return true;
  }

  void move(double t) {
    if (t == 1.0) {
      std::copy(target_.begin(), target_.end(), b_.alpha);
    } else {
      problem_.move_towards(target_.data(), t);
    }
    for (std::size_t k = 0; k < size_; ++k) b_.G[k] += t * Kd_[k];
  }

  // Step 4: over the newest consecutive secants with <s,y> > 0.
  double next_step() const {
    double ss = 0.0, sy = 0.0;
    for (auto secant = secants_.rbegin(); secant != secants_.rend() && secant->sy > 0.0; ++secant) {
      ss += secant->ss;
      sy += secant->sy;
    }
    return sy > 0.0 ? std::clamp(ss / sy, o_.rho_min, o_.rho_max) : o_.rho_max;
  }

  // Step 5.
  void record() {
    if (f_ < f_best_) {
      f_best_ = f_candidate_ = f_;
      failures_ = 0;
      std::copy(b_.alpha, b_.alpha + size_, best_.begin());
      return;
    }
    f_candidate_ = std::max(f_candidate_, f_);
    if (++failures_ == o_.patience) {
      f_ref_ = f_candidate_;
      f_candidate_ = f_;
      failures_ = 0;
    }
  }

  // G and f from scratch: G = G_start + K (alpha - alpha_start).
  void refresh() {
    for (std::size_t k = 0; k < size_; ++k) d_[k] = b_.alpha[k] - alpha_start_[k];
    const double dKd = curvature();
    f_ = problem_.slope(G_start_.data(), d_.data()) + 0.5 * dKd;
    for (std::size_t k = 0; k < size_; ++k) b_.G[k] = G_start_[k] + Kd_[k];
  }

  // The method is nonmonotone: if it ends at max_iter or is interrupted, the last point need not be the best.
  void return_best() {
    if (f_ > f_best_) std::copy(best_.begin(), best_.end(), b_.alpha);
    refresh();
  }

  struct Secant {
    double ss, sy;
  };

  Problem problem_;
  Subproblem<typename Problem::Value> b_;
  GradientOptions o_;
  Interrupt interrupt_;
  std::size_t size_;
  std::vector<double> alpha_start_, G_start_, best_, target_, d_, Kd_;  // (q, m) each
  std::vector<Secant> secants_;                                         // oldest first
  double f_ = 0.0, f_best_ = 0.0, f_candidate_ = 0.0;
  double f_ref_ = std::numeric_limits<double>::infinity();
  Index failures_ = 0;
};

}  // namespace multimargin::solvers
