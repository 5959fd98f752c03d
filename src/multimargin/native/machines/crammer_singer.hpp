// The Crammer-Singer machine: all operations on one sample (one row) that the solvers need.
//
//     feasible rows  alpha <= C e_y, sum_r alpha_r = 0;  equivalently z = C e_y - alpha >= 0, sum z = C
//     dual           D(alpha) = 1/2 <alpha, K alpha> - sum_i alpha_{i,y_i},  gradient G = K alpha - e_y
//     optimal        iff every class with z_r > 0 attains max_q G_q, in every row
//
// Other machines are classes with the same members (machine.hpp). state/measure.hpp and the solvers take a machine as a
// template argument.
#pragma once

#include "base/eight.hpp"
#include "base/counts.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "machines/simplex.hpp"
#include "machines/simplex_lanes.hpp"

namespace multimargin::machines {

class CrammerSinger {
 public:
  using Update = SimplexUpdate;
  static constexpr std::string_view kName = "crammer-singer";
  static constexpr bool kSharesMean = false;
  static constexpr bool kSumsToZero = true;  // rows of alpha
  static constexpr bool kTwoSided = false;   // every variable has an upper bound only
  static constexpr Index kLeastClasses = 2;  // listed, for a sample to move: the own class and another

  static Update find_update(std::string_view name) { return find_simplex_update(name); }

  // For rows of up to m classes. relax multiplies the step (1 is the exact solve, less than 2 still descends); tau is
  // the tolerance of bisection and smo.
  CrammerSinger(Index m, Update update, std::uint64_t seed, double relax = 1.0, double tau = 0.0)
      : update_(update), relax_(relax), tau_(tau), random_(seed), buffer_(3 * m) {}

  // psi = max_r G_r - min_{r : z_r > 1e-8 C} G_r                                  (CS01, Eq. 32)
  // g   = sum_r z_r (max_q G_q - G_r), the row's share of the duality gap         (-ell of NY, Eq. 2.12)
  static MULTIMARGIN_INLINE RowMeasure measure(const double* G, const double* alpha, Index y, double C, Index m) {
    const double top = max_of(G, m);
    const double own = top - G[y];
    if (alpha[y] == 0.0) return {own, C * own};
    const double own_z = C - alpha[y];
    const double low = lowest_active(G, alpha, y, C, m);
    // Off the own class z = -alpha; the own class has alpha >= 0 and drops out of this sum.
    const double others = sum_over(m, [=](Index r) { return (alpha[r] < 0.0 ? -alpha[r] : 0.0) * (top - G[r]); });
    return {top - low, others + own_z * own};
  }

  // psi alone.
  static MULTIMARGIN_INLINE double violation(const double* G, const double* alpha, Index y, double C, Index m) {
    if (m > kShort) return max_of(G, m) - (alpha[y] == 0.0 ? G[y] : lowest_active(G, alpha, y, C, m));
    const double cut = -kActive * C;
    double top = G[0], low = kInfinity;
    for (Index r = 0; r < m; ++r) {
      top = G[r] > top ? G[r] : top;
      const double active = alpha[r] - (r == y ? C : 0.0) < cut ? G[r] : kInfinity;
      low = active < low ? active : low;
    }
    return top - low;
  }

  // How much the differences of G must change before a row alpha = 0 can move; -psi if it can.
  static MULTIMARGIN_INLINE double slack(const double* G, Index y, Index m) {
    return G[y] - max_over(m, [=](Index r) { return r == y ? -kInfinity : G[r]; });
  }

  // g / C, because g <= C psi: the quantity that the projected gradient method bounds by eps.
  static double progress(const RowMeasure& row, double C, Index /*m*/) { return row.gain / C; }

  // The classes that can move soon: the own class, those with weight, and those within width of the largest G.
  static auto listed(const double* G, const double* alpha, Index y, double /*C*/, Index m, double width) {
    return [=, cut = max_of(G, m) - width](Index r) { return r == y || alpha[r] != 0.0 || G[r] >= cut; };
  }

  // One-sample solve: reduces  <G, delta> + kii/(2 relax) |delta|^2  over alpha + delta feasible, by the chosen update
  // (simplex.hpp); alpha holds the old row on entry and the new one on return. kii <= 0 leaves the linear problem,
  // solved by alpha = C (e_y - e_p), p in argmax G (y if it is among them): such a sample does not change the model,
  // but the gap would not close without it.
  void minimise(const double* G, double kii, Index y, double C, Index m, double* alpha) {
    with_count(m, [&](auto count) { minimise_of(count, G, kii, y, C, alpha); });
  }
  template <class Count>
  void minimise_of(Count m, const double* G, double kii, Index y, double C, double* alpha) {
    if (kii > 0.0) {
      solve(G, std::min(relax_ / kii, std::numeric_limits<double>::max()), y, C, m, alpha,
            [this](const auto& p, double* z) { update_simplex(update_, p, z); });
    } else {
      std::fill(alpha, alpha + m, 0.0);
      const Index p = argmax_of(G, m);
      if (G[p] > G[y]) {
        alpha[y] = C;
        alpha[p] = -C;
      }
    }
  }

  // The exact solve for K_ii > 0 over `count` classes, at most four, the own one first, without a branch. All arrays
  // have four values; those that are too many are solved to 0.
  static MULTIMARGIN_INLINE void minimise_four(const double* G, double kii, double C, Index count, const double* alpha,
                                               double* next) {
    const double top = std::max(std::max(G[0], G[1]), std::max(G[2], G[3]));
    const double step = std::min(1.0 / kii, std::numeric_limits<double>::max());
    double D[4], z[4];
    for (Index c = 0; c < 4; ++c) {
      const double old = c == 0 ? C - alpha[0] : 0.0 - alpha[c], descent = (G[c] - top) * step;
      D[c] = c < count && descent > lanes::kFarAway ? old + descent : lanes::kFarAway;
    }
    simplex::solve_four(D, C, z);
    const double others = (z[1] + z[2]) + z[3];
    next[0] = z[0] == 0.0 ? C : std::min(others, C);
    for (Index c = 1; c < 4; ++c) next[c] = 0.0 - z[c];
  }

  // Projects alpha - step G onto the feasible rows (NY, Eq. 3.3) in place: the same problem with 1/kii = step, always
  // solved exactly.
  void project(const double* G, double step, Index y, double C, Index m, double* alpha) {
    with_count(m, [&](auto count) {
      solve(G, step, y, C, count, alpha, [](const auto& p, double* z) { simplex::update_from_active(p, z); });
    });
  }

  // project and progress for kTogether rows, one after the other in memory (simplex_lanes.hpp); each has a step of its
  // own. `work` has room for 2 m kTogether values.
  static constexpr Index kTogether = lanes::kRows;
  static void project_together(const double* G, const double* step, const std::int32_t* y, const double* C, Index m,
                               double* alpha, double* work) {
    lanes::project(G, step, y, C, m, alpha, work);
  }
  static double progress_together(const double* G, const double* alpha, const std::int32_t* y, const double* C,
                                  Index m, double* work) {
    double gain[kTogether], worst = 0.0;
    lanes::gains(G, alpha, y, C, m, gain, work);
    for (Index l = 0; l < kTogether; ++l) worst = worse_of(worst, gain[l] / C[l]);
    return worst;
  }

  // alpha <- alpha + t (target - alpha), 0 < t < 1, for feasible rows. The result is feasible to the last bit.
  static void move_towards(const double* target, double t, Index y, double C, Index m, double* alpha) {
    const bool bounded = alpha[y] == C && target[y] == C;
    double others = 0.0;
    for (Index r = 0; r < m; ++r) {
      if (r == y) continue;
      alpha[r] += t * (target[r] - alpha[r]);
      others -= alpha[r];
    }
    alpha[y] = bounded ? C : std::min(others, C);
  }

  static void lift(Index, Index, double*) {}
  static void lower(Index, Index, double*) {}

  // psi of eight rows, by the largest gradient of a variable that may fall, and the smallest of one that may rise.
  static MULTIMARGIN_INLINE Eight worst(const Eight& top, const Eight& low, const Eight& /*own*/) { return top - low; }

  // The entries that move if a point whose projection is alpha moves a little (Python's Problem.face): those with
  // z > 0, if there are several.
  static void face(const double* alpha, Index y, double C, Index m, bool* free) {
    Index count = 0;
    for (Index r = 0; r < m; ++r) count += free[r] = (r == y ? C - alpha[r] : -alpha[r]) > kSmallest * C;
    if (count == 1) std::fill_n(free, m, false);
  }

  // How far a variable may rise (its z) and fall.
  static double rise(double alpha, bool own, double C) { return own ? C - alpha : -alpha; }
  static double fall(double, bool, double) { return kInfinity; }

  // Makes a row that is feasible up to rounding feasible to the last bit.
  void settle(Index y, double C, Index m, double* alpha) const {
    const bool bounded = C - alpha[y] <= kSmallest * C;
    double others = 0.0;
    for (Index r = 0; r < m; ++r) {
      if (r == y) continue;
      if (alpha[r] > -kSmallest * C) alpha[r] = 0.0;
      others -= alpha[r];
    }
    alpha[y] = bounded ? C : std::min(others, C);
  }

 private:
  static constexpr Index kShort = 8;          // up to so many classes a plain loop is fastest

  static MULTIMARGIN_INLINE double lowest_active(const double* G, const double* alpha, Index y, double C, Index m) {
    const double cut = -kActive * C;
    const double low = min_over(m, [=](Index r) { return alpha[r] < cut ? G[r] : kInfinity; });
    const double own = G[y];
    return alpha[y] - C < cut && own < low ? own : low;
  }

  // D = z + step (G - max G). Subtracting max G only shifts theta, and keeps precision: then max D lies in [0, C], and
  // all D of active classes are of the size of C.
  template <class Count, class Solve>
  void solve(const double* G, double step, Index y, double C, Count m, double* alpha, Solve update) {
    double* D = buffer_.data();
    double* z = D + m;
    const double top = max_of(G, m);
    for (Index r = 0; r < m; ++r) z[r] = alpha[r] < 0.0 ? -alpha[r] : 0.0;
    z[y] = std::max(C - alpha[y], 0.0);
    for (Index r = 0; r < m; ++r) {
      const double descent = (G[r] - top) * step;
      D[r] = z[r] + (descent > lanes::kFarAway ? descent : lanes::kFarAway);
    }
    update(SimplexProblem<Count>{D, m, C, z + m, &random_, tau_}, z);
    store(z, y, C, m, alpha);
  }

  // alpha = C e_y - z, with the own entry as minus the sum of the others: the row sums to zero, and z_r = 0 gives exact
  // values (0 off the own class, C on it, 0 everywhere if only z_y > 0).
  template <class Count>
  static MULTIMARGIN_INLINE void store(const double* z, Index y, double C, Count m, double* alpha) {
    const double others = sum_over(m, [=](Index r) { return r == y ? 0.0 : z[r]; });
    for (Index r = 0; r < m; ++r) alpha[r] = 0.0 - z[r];
    alpha[y] = z[y] == 0.0 ? C : std::min(others, C);
  }

  SimplexUpdate update_;
  double relax_, tau_;
  Random random_;
  std::vector<double> buffer_;  // D, z and the scratch of the update
};

}  // namespace multimargin::machines
