// Steps of two samples at once between two classes.
//
// A wide kernel is nearly constant: whatever moves weight of one sample from class s to class r changes the scores of
// all samples alike, and they answer by moving back. If sample j moves as much weight from r to s as sample i moves
// from s to r, the sums of both classes stay, and the dual is nearly flat along the step, which can be long:
//
//     alpha_ir += t,  alpha_is -= t,  alpha_jr -= t,  alpha_js += t,
//     slope  G_ir - G_is - G_jr + G_js,   curvature  2 (K_ii + K_jj - 2 K_ij)   instead of   2 K_ii  for i alone.
//
// As in SMO with second order information, i is given, and j is the partner with which the dual falls most. Candidates
// are found by the pair of classes (s, r): samples with weight in s that have r listed too. Looking for the best one
// takes as long as a step or longer. It goes on while the dual falls by enough for that; if not, samples move
// alone for some time, and for twice as long if the next trial fails too. Blocks of large problems, most of which are
// solved by one or two updates per sample, begin with updates of single samples.
#pragma once

#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

template <class Machine, class T, class Real>
class Partners {
 public:
  using Variables = ListedVariables<Machine, T, Real>;

  // For blocks of q samples and m classes.
  Partners(Index q, Index m) : of_(m * m), row_(2 * m), idle_(kFirst * q), wait_(kSmall ? kIdle : q) {}

  // The samples above `threshold` are to be updated from now on.
  void begin_stage(double threshold) {
    reach_ = kReach * threshold;
    is_listed_ = false;
  }

  // Moves sample i, whose gradient and values are given, and the best partner, if with it the dual falls by more than
  // by i alone. Returns the partner, or -1 if nothing moved. Adds the work.
  Index step(const Subproblem<T>& b, Variables& variables, const Machine& machine, Index i, const double* G,
             const double* alpha, Index& work) {
    if (idle_ > 0 && --idle_ > 0) return -1;
    if (!is_listed_) list(b, variables, work);
    const Move move = find_move(b, variables, i, G, alpha);
    if (move.up < 0) return -1;
    const Found found = find_partner(b, variables, i, move, work);
    judge(variables, i, move, found);
    if (found.j < 0) return -1;
    double *mine = row_.data(), *other = mine + b.m;
    shift(b, variables, machine, i, move.up, move.down, found.length, mine);
    shift(b, variables, machine, found.j, found.up, found.down, found.length, other);
    work += variables.write_two(i, mine, found.j, other);
    add(b, variables, i, move.down);
    add(b, variables, found.j, found.down);
    return found.j;
  }

  // Sample i has moved alone.
  void follow(const Subproblem<T>& b, const Variables& variables, Index i) {
    if (idle_ > 0 || !is_listed_) return;
    for (Index c = 0; c < variables.count(i); ++c) add(b, variables, i, c);
  }

 private:
  struct Move {
    Index up, down;      // the variables of sample i that rise and fall, or -1
    double slope, room;  // how fast the dual falls; how far it may go
    double alone;        // how much the dual falls if i moves alone
  };
  struct Candidate {
    std::int32_t j, c, d;     // sample, and its variables that fall and rise; the class of c has weight
    std::int32_t at_c, at_d;  // where their gradients are
  };
  struct Found {
    Index j, up, down;  // the partner, or -1, and its variables that rise and fall
    double length, gain;
    Index seen;  // candidates that were looked at
  };
  static constexpr double kReach = 4.0;  // times the threshold: who would violate soon may be a partner
  static constexpr Index kMost = 128;    // candidates that are looked at
  static constexpr Index kTrial = 32;    // searches, before it is decided whether they pay
  static constexpr Index kIdle = 256;    // updates without searches after a trial that failed
  // Of K_ii: what rounding of kernel values leaves of a small curvature.
  static constexpr double kLeast = std::is_same_v<T, Fixed16> ? 2e-4 : 1e-6;
  // The dual must fall by so much of what samples alone would achieve in the same time. Steps of two
  // are worth more than that, because others do not undo them. Kernel values are fixed-point numbers if the problem is
  // large and not hard: a search takes longer then, and gains less.
  static constexpr bool kSmall = std::is_same_v<T, double>;
  static constexpr bool kFixed = std::is_same_v<T, Fixed16>;
  static constexpr double kEnough = kFixed ? 1.0 : 0.6;
  static constexpr Index kFirst = kFixed ? 4 : 0;  // updates per sample before the first search
  // In the time of a multiply-add: looking at a candidate, solving one row.
  static constexpr Index kWorkOfCandidate = kFixed ? 20 : 10, kWorkOfUpdate = 800;

  // Lists the samples with weight that would leave a class if gradients changed by reach_.
  void list(const Subproblem<T>& b, const Variables& variables, Index& work) {
    const std::vector<Real>& G = variables.gradient();
    for (auto& members : of_) members.clear();
    is_member_.assign(G.size(), false);
    for (Index j = 0; j < b.q; ++j) {
      const Index count = variables.count(j);
      auto gradient = [&](Index c) { return static_cast<double>(G[variables.gradient_place(j, c)]); };
      double top = -kInfinity, second = -kInfinity;
      for (Index c = 0; c < count; ++c) {
        second = std::max(second, std::min(gradient(c), top));
        top = std::max(top, gradient(c));
      }
      for (Index c = 0; c < count; ++c)
        if ((gradient(c) < top ? top : second) >= gradient(c) - reach_) add(b, variables, j, c);
    }
    work += kWorkOfCandidate * std::ssize(G);
    is_listed_ = true;
  }

  // Makes a sample a candidate for the class of its variable c, if it has weight there, and each other class it has.
  // If all samples have all classes, one list per class will do.
  void add(const Subproblem<T>& b, const Variables& variables, Index j, Index c) {
    if (!(Machine::rise(variables.value(j, c), c == variables.own(j), b.C[j]) > kActive * b.C[j])) return;
    if (std::exchange(is_member_[variables.gradient_place(j, c)], true)) return;
    const std::int32_t sample = static_cast<std::int32_t>(j), falls = static_cast<std::int32_t>(c);
    const std::int32_t at = variables.gradient_place(j, c);
    const Index first = variables.label(j, c) * b.m;
    if (variables.lists_all()) return of_[first].push_back({sample, falls, -1, at, -1});
    for (std::int32_t d = 0; d < variables.count(j); ++d)
      if (d != c) of_[first + variables.label(j, d)].push_back({sample, falls, d, at, variables.gradient_place(j, d)});
  }

  // The two variables of a sample between which it would move.
  static Move find_move(const Subproblem<T>& b, const Variables& variables, Index i, const double* G,
                        const double* alpha) {
    const Index own = variables.own(i);
    const double C = b.C[i], least = kActive * C;
    auto rise = [=](Index c) { return Machine::rise(alpha[c], c == own, C); };
    auto fall = [=](Index c) { return Machine::fall(alpha[c], c == own, C); };
    Index up = -1, down = -1;
    for (Index c = 0; c < variables.count(i); ++c) {
      if (rise(c) > least && (up < 0 || G[c] < G[up])) up = c;
      if (fall(c) > least && (down < 0 || G[c] > G[down])) down = c;
    }
    if (up < 0 || down < 0 || !(G[down] > G[up]) || !(b.diag[i] > 0.0)) return {-1, -1, 0.0, 0.0, 0.0};
    const double slope = G[down] - G[up], room = std::min(rise(up), fall(down)), curvature = 2.0 * b.diag[i];
    return {up, down, slope, room, gain(slope, curvature, std::min(slope / curvature, room))};
  }

  // The candidates take turns if there are many.
  Found find_partner(const Subproblem<T>& b, const Variables& variables, Index i, const Move& move, Index& work) {
    const Index r = variables.label(i, move.up), first = variables.label(i, move.down) * b.m;
    const bool all = variables.lists_all();
    const auto& members = of_[all ? first : first + r];
    const Index size = std::ssize(members), number = std::min(size, kMost);
    const Real* G = variables.gradient().data();
    const T* row = variables.kernel_row(i, move.up);
    const double kii = b.diag[i], least = kLeast * kii;
    Found best{-1, -1, -1, 0.0, move.alone, number};
    Index at = number < size ? next_ % size : 0;
    next_ += number;
    for (Index k = 0; k < number; ++k, at = at + 1 < size ? at + 1 : 0) {
      auto [j, c, d, at_c, at_d] = members[at];
      if (j == i) continue;
      if (all) d = static_cast<std::int32_t>(r), at_d = variables.gradient_place(j, r);
      const double slope = move.slope + G[at_d] - G[at_c];
      if (!(slope * move.room > best.gain)) continue;  // even without curvature the dual would fall by no more
      const double kij = kStoredUnit<T> * stored_value<double>(row[variables.column(j, r, at_d)]);
      const double curvature = 2.0 * std::max(kii + b.diag[j] - 2.0 * kij, least);
      double room = std::min(move.room, Machine::rise(variables.value(j, c), c == variables.own(j), b.C[j]));
      if constexpr (Machine::kTwoSided)
        room = std::min(room, Machine::fall(variables.value(j, d), d == variables.own(j), b.C[j]));
      const double length = std::min(slope / curvature, room), falls = gain(slope, curvature, length);
      if (falls > best.gain) best = {j, c, d, length, falls, number};
    }
    work += kWorkOfCandidate * number;
    return best;
  }

  // How much the dual falls along a step.
  static double gain(double slope, double curvature, double length) {
    return length * (slope - 0.5 * curvature * length);
  }

  // Decides whether looking for partners pays.
  void judge(const Variables& variables, Index i, const Move& move, const Found& found) {
    const Index r = variables.label(i, move.up), s = variables.label(i, move.down);
    const auto step = static_cast<double>(kWorkOfUpdate + variables.class_size(r) + variables.class_size(s));
    alone_ += move.alone, alone_work_ += step;
    both_ += found.gain;
    both_work_ += step * (found.j < 0 ? 1.0 : 2.0) + static_cast<double>(kWorkOfCandidate * found.seen);
    if (++searches_ < kTrial) return;
    if (both_ * alone_work_ >= kEnough * alone_ * both_work_) {
      wait_ = kIdle;
    } else {
      idle_ = wait_;
      wait_ *= 2;
      is_listed_ = false;
    }
    searches_ = 0;
    alone_ = both_ = alone_work_ = both_work_ = 0.0;
  }

  // The values of sample i after a step.
  static void shift(const Subproblem<T>& b, const Variables& variables, const Machine& machine, Index i, Index up,
                    Index down, double t, double* alpha) {
    const Index count = variables.count(i);
    for (Index c = 0; c < count; ++c) alpha[c] = variables.value(i, c);
    alpha[up] += t, alpha[down] -= t;
    machine.settle(variables.own(i), b.C[i], count, alpha);
  }

  std::vector<std::vector<Candidate>> of_;  // by class that falls and class that rises, or the first of a class: all
  std::vector<char> is_member_;             // of each variable, in the order of the gradient: whether it is listed
  bool is_listed_ = false;                  // whether these are up to date
  double reach_ = kInfinity;
  Index next_ = 0;                // who is looked at next
  std::vector<double> row_;       // new values of two samples
  Index idle_, wait_;              // updates without searches: still to come, and after the next failure
  Index searches_ = 0;             // of this trial; how much the dual fell in it, and would have fallen, and the work
  double alone_ = 0.0, both_ = 0.0, alone_work_ = 0.0, both_work_ = 0.0;
};

}  // namespace multimargin::solvers
