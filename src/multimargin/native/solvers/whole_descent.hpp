// Descent over a small block as a whole: the worst samples first, each with the best partner of all.
//
// Sweeps in random order visit many samples that hardly violate, and update them by what others soon undo. In a block
// of some hundred samples a look at all of them costs as much as an update, because it runs in vector registers. So
// every round measures all samples and updates the worst; each is given the partner with which the dual falls most,
// as in LIBSVM's SMO with second order information:
//
//     alpha_ir += t,  alpha_is -= t,  alpha_jr -= t,  alpha_js += t,
//     slope  G_is - G_ir - G_js + G_jr,   curvature  2 (K_ii + K_jj - 2 K_ij),
//
// or moves alone, with curvature 2 K_ii, if that lowers the dual more. s is the class with the largest gradient among
// those of sample i that may fall, r the one with the smallest among those that may rise. Steps over the face
// (newton_face.hpp) take turns with these. If they creep all the same, proximal steps (proximal_newton.hpp) end it.
#pragma once

#include "base/interrupt.hpp"
#include "solvers/newton_face.hpp"
#include "solvers/proximal_newton.hpp"
#include "solvers/whole_variables.hpp"

namespace multimargin::solvers {

using namespace machines;

template <class Machine, class T>
class WholeDescent {
 public:
  WholeDescent(const Subproblem<T>& block, Machine machine, const DescentOptions& options)
      : machine_(std::move(machine)), variables_(block, machine_), o_(options), interrupt_(options.seconds),
        row_(block.m) {
    if constexpr (kIsExact) proximal_.emplace(block);
  }

  // Stores even if an interrupt leaves run() half way: alpha and G always belong together.
  ~WholeDescent() { variables_.store(); }

  WholeDescent(const WholeDescent&) = delete;
  WholeDescent& operator=(const WholeDescent&) = delete;

  // Ends if all violations are at most eps, if no step can be resolved, after as many updates as max_sweeps sweeps may
  // have, or with the round that reaches most_work. Proximal steps that have begun are not cut short.
  DescentResult run() {
    DescentResult result;
    const Index q = variables_.samples();
    while ((result.violation = measure(result)) > o_.eps) {
      result.sweeps = result.updates / q;
      const bool over = result.sweeps >= o_.max_sweeps || result.work >= o_.most_work;
      if ((over && !(proximal_ && proximal_->is_going())) || interrupt_.late()) break;
      if constexpr (kIsExact)
        if (o_.faces && take_proximal_step(result)) continue;
      if (o_.faces && newton_.step(variables_, result.work)) continue;
      if (round(std::max(o_.eps, kShare * result.violation), result) == 0) break;
    }
    return result;
  }

 private:
  // Rounded kernel values may have negative eigenvalues, and then a proximal step may find no minimum.
  static constexpr bool kIsExact = std::is_same_v<T, double>;
  static constexpr double kShare = 0.5;  // of the largest violation: who is updated in a round
  static constexpr Index kMost = 32;     // samples in a round
  // In the time of a multiply-add: measuring a variable; a candidate for a partner, and the rest of an update.
  static constexpr Index kWorkOfMeasure = 1, kWorkOfCandidate = 4, kWorkOfUpdate = 800;

  struct Partner {
    Index j;
    double gain;
  };

  double measure(DescentResult& result) {
    const Index work = kWorkOfMeasure * variables_.stride() * variables_.classes();
    result.work += work;
    interrupt_.poll(work);
    return variables_.measure();
  }

  // Whether a proximal step was due, and has moved the block.
  bool take_proximal_step(DescentResult& result) {
    if (!proximal_->is_due(variables_, result.work)) return false;
    variables_.store();
    if (!proximal_->step(result.violation, o_.eps, interrupt_, result.work)) return false;
    variables_.load();
    return true;
  }

  // Updates the worst samples; returns how many have moved.
  Index round(double threshold, DescentResult& result) {
    worst_.clear();
    for (Index i = 0; i < variables_.samples(); ++i)
      if (variables_.violation(i) > threshold) worst_.push_back(i);
    const auto before = [&](Index i, Index j) { return variables_.violation(i) > variables_.violation(j); };
    const Index count = std::min(kMost, std::ssize(worst_));
    std::partial_sort(worst_.begin(), worst_.begin() + count, worst_.end(), before);
    Index moved = 0;
    for (Index k = 0; k < count; ++k) {
      const Index work = kWorkOfUpdate + kWorkOfCandidate * variables_.stride();
      moved += update(worst_[k], threshold);
      result.work += work;
      interrupt_.poll(work);
    }
    result.updates += moved;
    return moved;
  }

  // Whether sample i has moved: its violation is still above the threshold, and the step is not rounding.
  bool update(Index i, double threshold) {
    Index up = -1, down = -1;
    double top = -kInfinity, low = kInfinity;
    for (Index r = 0; r < variables_.classes(); ++r) {
      const double g = row_[r] = variables_.gradient(i, r);
      if (g > top && variables_.may_fall(i, r)) top = g, down = r;
      if (g < low && variables_.may_rise(i, r)) low = g, up = r;
    }
    const double slope = top - low, kii = variables_.diagonal(i);
    if (!(slope > threshold)) return false;
    const double room = std::min(variables_.rise(i, up), variables_.fall(i, down));
    const double alone = std::min(slope / (2.0 * kii), room), gain = alone * (slope - kii * alone);
    const Partner found = partner(variables_.gradients(up), variables_.gradients(down), variables_.rises(down),
                                  variables_.falls(up), variables_.diagonal(), variables_.kernel_row(i),
                                  variables_.samples(), {slope, kii, room});
    if (found.gain > gain) return move_two(i, found.j, up, down, slope, room);
    if (!resolves(i, alone)) return false;
    variables_.change(i, up, alone);
    variables_.change(i, down, -alone);
    variables_.add_row(i, up, alone);
    variables_.add_row(i, down, -alone);
    return true;
  }

  bool resolves(Index i, double step) const {
    const auto& b = variables_.block();
    return step > resolution(row_.data(), b.diag[i], b.C[i], b.m);
  }

  bool move_two(Index i, Index j, Index up, Index down, double slope, double room) {
    const double together = slope + variables_.gradient(j, up) - variables_.gradient(j, down);
    const double kii = variables_.diagonal(i), kij = to_stored<double>(variables_.kernel_row(i)[j]);
    const double curvature = 2.0 * std::max(kii + variables_.diagonal(j) - 2.0 * kij, kLeastCurvature<T> * kii);
    const double most = std::min({room, variables_.rise(j, down), variables_.fall(j, up)});
    const double step = std::min(together / curvature, most);
    if (!resolves(i, step)) return false;
    for (const auto& [sample, sign] : {std::pair{i, 1.0}, std::pair{j, -1.0}}) {
      variables_.change(sample, up, sign * step);
      variables_.change(sample, down, -sign * step);
    }
    variables_.add_two_rows(i, step, j, -step, up);
    variables_.add_two_rows(i, -step, j, step, down);
    return true;
  }

  struct Step {
    double slope, kii, room;  // of the sample that looks for a partner
  };

  // The partner with which the dual falls most, given the gradients of all samples in the two classes, and how far they
  // may move.
  static MULTIMARGIN_CLONES Partner partner(const double* up, const double* down, const double* rise,
                                            const double* fall, const double* diagonal, const T* row, Index q,
                                            Step step) {
    const Eight slope(step.slope), kii(step.kii), room(step.room), least(kLeastCurvature<T> * step.kii);
    const Eight none(0.0), two(2.0), unit(kStoredUnit<T>);
    Eight best(0.0), at(0.0), number(std::array<double, 8>{0, 1, 2, 3, 4, 5, 6, 7}.data());
    for (Index j = 0; j < q; j += Eight::count) {
      T last[Eight::count] = {};
      const bool whole = j + Eight::count <= q;
      if (!whole) std::copy(row + j, row + q, last);
      const Eight kij = unit * Eight::stored(whole ? row + j : last);
      const Eight together = larger(slope + (Eight(up + j) - Eight(down + j)), none);
      const Eight half = larger(kii + Eight(diagonal + j) - two * kij, least);
      Eight most = smaller(room, Eight(rise + j));
      if constexpr (Machine::kTwoSided) most = smaller(most, Eight(fall + j));
      const Eight length = smaller(together / (two * half), most);
      const Eight gain = length * (together - half * length);
      at.set_if_above(gain, best, number);
      best = larger(gain, best);
      number += Eight(static_cast<double>(Eight::count));
    }
    Partner found{-1, 0.0};
    for (Index l = 0; l < Eight::count; ++l)
      if (best[l] > found.gain) found = {static_cast<Index>(at[l]), best[l]};
    return found;
  }

  Machine machine_;
  WholeVariables<Machine, T> variables_;
  DescentOptions o_;
  Interrupt interrupt_;
  NewtonFace<Machine, T> newton_;
  std::optional<ProximalNewton<Machine>> proximal_;  // if kernel values are exact
  std::vector<double> row_;   // gradient of the sample that moves
  std::vector<Index> worst_;  // samples of a round
};

}  // namespace multimargin::solvers
