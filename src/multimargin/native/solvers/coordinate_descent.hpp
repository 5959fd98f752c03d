// Block coordinate descent: one sample after the other, each by its own (mostly exact) update.
#pragma once

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "solvers/face.hpp"
#include "solvers/lane_scan.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/partners.hpp"
#include "solvers/span_step.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

// Solves the subproblem in place. A sweep gives the rows with a violation above a threshold to Machine::minimise, in
// shuffled order (CS01, Figure 2, step 2, in sweeps as in Blondel et al., Algorithm 1). Ends when a sweep over all rows
// at threshold eps updates nothing, after max_sweeps, or with the sweep that reaches most_work. In the first case the
// violation is at most eps, unless float64 cannot resolve the steps.
//
// If gradients are float, a sweep first lists the rows above the threshold (lane_scan.hpp). Otherwise it visits them
// all: on badly conditioned problems, which have double, a list needs several times the updates.
//
// The threshold is eps. If staged, it starts at half the largest violation and is multiplied by 0.3 per stage, down to
// eps. A stage ends when a sweep updates hardly any row, or after kStageSweeps: under frank-wolfe the violation of a
// class with a small z_r hardly falls, and must not hold up all other rows.
//
// With `faces`, sweeps alternate with conjugate gradients over the free variables (face.hpp), as soon as those take no
// longer than the sweeps since the last. With `spans`, they alternate with steps over what they did (span_step.hpp).
// With `partners`, an update may move two samples (partners.hpp).
template <class Machine, class T, class Real>
class CoordinateDescent {
 public:
  using Variables = ListedVariables<Machine, T, Real>;

  CoordinateDescent(const Subproblem<T>& block, Machine machine, Variables variables, const DescentOptions& options)
      : b_(block), o_(options), machine_(std::move(machine)), random_(options.seed), interrupt_(options.seconds),
        variables_(std::move(variables)), row_(3 * block.m) {}

  // Stores even if an interrupt leaves run() half way: alpha and G always belong together.
  ~CoordinateDescent() { variables_.store(); }

  CoordinateDescent(const CoordinateDescent&) = delete;
  CoordinateDescent& operator=(const CoordinateDescent&) = delete;

  DescentResult run() {
    if (std::is_same_v<Real, float>) scan_.emplace(b_.C, variables_);
    if (o_.partners) partners_.emplace(b_.q, b_.m);
    DescentResult result{.violation = largest_violation()};
    double threshold = o_.staged ? std::max(o_.eps, 0.5 * result.violation) : o_.eps;
    while (result.violation > o_.eps && result.sweeps < o_.max_sweeps && !is_over(result)) {
      const Index last = o_.staged ? std::min(o_.max_sweeps, result.sweeps + kStageSweeps) : result.sweeps + 1;
      const Index few = threshold > o_.eps ? b_.q / 100 : 0;  // the next stage takes care of them
      const Index updates = stage(threshold, few, last, result);
      if (threshold <= o_.eps && updates == 0) break;
      threshold = std::max(o_.eps, 0.3 * threshold);
    }
    result.violation = largest_violation();
    return result;
  }

 private:
  static constexpr Index kStageSweeps = 100;
  // In the time of a multiply-add: looking at a row, and solving one.
  static constexpr Index kWorkOfVisit = 160, kWorkOfUpdate = 800;
  static constexpr Index kAhead = 2;  // updates: so early kernel rows are fetched from memory

  bool is_over(const DescentResult& result) const { return result.work >= o_.most_work || interrupt_.late(); }

  double violation(Index i) {
    const Index count = variables_.count(i);
    if (count == 0) return 0.0;
    variables_.read(i, row_.data(), row_.data() + b_.m);
    return Machine::violation(row_.data(), row_.data() + b_.m, variables_.own(i), b_.C[i], count);
  }

  double largest_violation() {
    double worst = 0.0;
    for (Index i = 0; i < b_.q; ++i) worst = worse_of(worst, violation(i));
    return worst;
  }

  // Sweeps until one makes at most `few` updates, or the total of sweeps is `last`, or the work is most_work. Returns
  // the updates of the first sweep.
  Index stage(double threshold, Index few, Index last, DescentResult& result) {
    order_.resize(b_.q);
    std::iota(order_.begin(), order_.end(), Index{0});
    if (partners_) partners_->begin_stage(threshold);
    const Index first = sweep(threshold, result);
    Index updates = first;
    while (updates > few && result.sweeps < last && !is_over(result)) updates = sweep(threshold, result);
    return first;
  }

  Index sweep(double threshold, DescentResult& result) {
    bool moved = false;  // all samples may have
    if (o_.faces) moved |= face_.step(b_, variables_, machine_, threshold, result, interrupt_);
    if (o_.spans) moved |= span_.step(b_, variables_, machine_, result, o_.eps);
    if (scan_ && moved) scan_->refresh_all(variables_);
    const Index updates = scan_ ? update_listed(threshold, result) : update_visited(threshold, result);
    ++result.sweeps;
    result.updates += updates;
    return updates;
  }

  // Visits the rows of order_ in shuffled order, and keeps there those that were not optimal. Returns the updates.
  Index update_visited(double threshold, DescentResult& result) {
    random_.shuffle(order_.data(), std::ssize(order_));
    Index updates = 0;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < order_.size() && !interrupt_.late(); ++k) {
      const Index i = order_[k];
      interrupt_.poll(b_.m);
      const double before = violation(i);
      if (before > threshold) updates += update(i, result.work);
      if (before > 0.0) order_[kept++] = i;
    }
    result.work += kWorkOfVisit * std::ssize(order_);
    order_.resize(kept);
    return updates;
  }

  // Looks at all rows, and updates those above the threshold in shuffled order, unless others have brought them below
  // it meanwhile, which is so for most of them: only the kernel rows of the others are fetched. Returns the updates.
  Index update_listed(double threshold, DescentResult& result) {
    scan_->find(variables_.gradient().data(), threshold, order_);
    result.work += kWorkOfVisit * b_.q;
    const auto listed = std::ssize(order_);
    random_.shuffle(order_.data(), listed);
    variables_.copy_rows(order_, o_.n_threads);
    Index updates = 0, seen = 0;
    // The next sample that is still above the threshold, whose kernel rows are fetched; -1 if there is none.
    auto next = [&]() -> Index {
      while (seen < listed) {
        const Index i = order_[seen++];
        interrupt_.poll(b_.m);
        if (!(violation(i) > threshold)) continue;
        variables_.prefetch(i);
        return i;
      }
      return -1;
    };
    std::array<Index, kAhead> ahead;
    for (Index& i : ahead) i = next();
    for (Index k = 0; ahead[k % kAhead] >= 0 && !interrupt_.late(); ++k) {
      const Index i = std::exchange(ahead[k % kAhead], next());
      if (violation(i) > threshold) updates += update(i, result.work);
    }
    return updates;
  }

  // A step of two samples, or the one-sample solve of the row that violation() has read.
  bool update(Index i, Index& work) {
    const Index count = variables_.count(i);
    const double *G = row_.data(), *alpha = G + b_.m;
    double* next = row_.data() + 2 * b_.m;
    if (const Index j = partners_ ? partners_->step(b_, variables_, machine_, i, G, alpha, work) : -1; j >= 0) {
      if (scan_) scan_->refresh(variables_, i), scan_->refresh(variables_, j);
      work += kWorkOfUpdate;
      interrupt_.poll(4 * b_.q);
      return true;
    }
    if (!solve_row(machine_, G, alpha, b_.diag[i], variables_.own(i), b_.C[i], count, next)) return false;
    const Index written = variables_.write(i, next);
    if (scan_) scan_->refresh(variables_, i);
    if (partners_) partners_->follow(b_, variables_, i);
    work += kWorkOfUpdate + written;
    interrupt_.poll(written);
    return true;
  }

  Subproblem<T> b_;
  DescentOptions o_;
  Machine machine_;
  Random random_;
  Interrupt interrupt_;
  Variables variables_;
  FaceSteps<Machine, T> face_;
  SpanStep<Machine, T, Real> span_;
  std::optional<Partners<Machine, T, Real>> partners_;  // if samples may move in twos
  std::optional<LaneScan<Machine, Variables>> scan_;  // if rows are listed
  std::vector<Index> order_;  // rows to visit or to update
  std::vector<double> row_;   // of one sample: gradient, alpha, new alpha
};

}  // namespace multimargin::solvers
