// Machines with one dual variable beta_r >= 0 per wrong class, coupled by alpha_y:
//
//     alpha_y = share sum_r beta_r,    alpha_r = alpha_y - beta_r  with share = 1/m   (Shape::kSharesMean)
//                                      alpha_r = -beta_r           with share = 1     (otherwise)
//     beta_r <= C  (Shape::kBounded)
//
// weston_watkins.hpp, lee_lin_wahba.hpp and msvm2.hpp each define one Shape. The listed rows (machine.hpp) of all of
// them hold -beta_r and, for the own class, alpha_y.
#pragma once

#include "base/eight.hpp"
#include "machines/box.hpp"
#include "machines/clipped_sum.hpp"
#include "machines/machine.hpp"

namespace multimargin::machines {

// The part of a Shape that machines with 0 <= beta_r <= C share.
struct BoundedShape {
  static constexpr bool kBounded = true;
  static double most(double C) { return C; }
  static double most_of_vertex(double C) { return C; }
  static double least_curvature(double /*C*/) { return 0.0; }

  template <class Beta, class Gamma>
  static MULTIMARGIN_INLINE double gain(Index m, Beta beta, Gamma gamma, Index y, double C) {
    return box::gain(m, beta, gamma, y, C);
  }

  // g / c with c = (m - 1) C, because g <= c v.
  static double progress(const RowMeasure& row, double C, Index m) {
    return row.gain / (static_cast<double>(m - 1) * C);
  }
};

template <class Shape>
class WrongClassMachine {
 public:
  using Update = BoxUpdate;
  static constexpr std::string_view kName = Shape::kName;
  static constexpr bool kSharesMean = Shape::kSharesMean;
  static constexpr bool kSumsToZero = true;  // rows of alpha
  static constexpr bool kTwoSided = true;    // a variable may have both bounds
  static constexpr Index kLeastClasses = 2;  // listed, for a sample to move: the own class and another

  static Update find_update(std::string_view name) { return find_box_update(name); }

  // relax multiplies the step (1 is the exact solve, up to 2 still descends).
  WrongClassMachine(Index m, Update update, std::uint64_t /*seed*/, double relax = 1.0)
      : update_(update), relax_(relax), share_(share_of(m)), a_(m) {}

  // Of a plain row.
  static MULTIMARGIN_INLINE RowMeasure measure(const double* G, const double* alpha, Index y, double C, Index m) {
    const double mean = kSharesMean ? alpha[y] : 0.0;
    auto beta = [=](Index r) { return mean - alpha[r]; };
    auto gamma = [=, own = G[y]](Index r) { return kSharesMean ? -G[r] : own - G[r]; };
    const double v = box::violation<Shape::kBounded>(m, beta, gamma, y, C, G);
    return {v, Shape::gain(m, beta, gamma, y, C)};
  }

  // How much gamma must change before a row alpha = 0 can move; minus the violation if it can.
  static MULTIMARGIN_INLINE double slack(const double* G, Index y, Index m) {
    const double own = kSharesMean ? 0.0 : G[y];
    return own - max_over(m, [=](Index r) { return r == y ? -kInfinity : G[r]; });
  }

  // Of a listed row.
  static MULTIMARGIN_INLINE double violation(const double* G, const double* row, Index own, double C, Index count) {
    auto beta = [=](Index c) { return -row[c]; };
    return box::violation<Shape::kBounded>(count, beta, gamma_of(G, own), own, C, G);
  }

  // The quantity that the projected gradient method bounds by eps.
  static double progress(const RowMeasure& row, double C, Index m) { return Shape::progress(row, C, m); }

  // The classes of a plain row that can move soon: those with weight, and those that get weight if gamma_r falls by
  // width.
  static auto listed(const double* G, const double* alpha, Index y, double /*C*/, Index /*m*/, double width) {
    const double zero = kSharesMean ? alpha[y] : 0.0, cut = (kSharesMean ? 0.0 : G[y]) - width;
    return [=](Index r) { return r == y ? !kSharesMean : alpha[r] != zero || G[r] >= cut; };
  }

  // One-sample solve of a listed row: reduces <G, delta> + kii/(2 relax) |delta|^2, delta the change of alpha, by
  // the chosen update. kii <= 0 leaves a linear problem.
  void minimise(const double* G, double kii, Index own, double C, Index count, double* row) {
    const double k = std::max(kii, Shape::least_curvature(C));
    if (update_ == BoxUpdate::exact && k > 0.0)
      solve(G, box::step_length(relax_, k), own, C, count, row);
    else
      go_to_vertex(G, k, own, C, count, row);
  }

  // Projects alpha - step G onto the feasible set. The row is plain and its G sums to zero, as the gradient of every
  // feasible alpha does.
  void project(const double* G, double step, Index y, double C, Index m, double* alpha) {
    lift(y, m, alpha);
    solve(G, step, y, C, m, alpha);
    lower(y, m, alpha);
  }

  // alpha <- alpha + t (target - alpha), 0 < t < 1, for plain, feasible rows. The result is feasible to the last bit.
  static void move_towards(const double* target, double t, Index y, double C, Index m, double* alpha) {
    const double to = kSharesMean ? target[y] : 0.0;
    lift(y, m, alpha);
    double sum = 0.0;
    for (Index r = 0; r < m; ++r) {
      if (r == y) continue;
      const double beta = -alpha[r] + t * (to - target[r] + alpha[r]);
      alpha[r] = -std::clamp(beta, 0.0, Shape::most(C)) + 0.0;
      sum -= alpha[r];
    }
    alpha[y] = share_of(m) * sum;
    lower(y, m, alpha);
  }

  static void lift(Index y, Index m, double* alpha) {
    if constexpr (kSharesMean)
      for (Index r = 0; r < m; ++r)
        if (r != y) alpha[r] -= alpha[y];
  }
  static void lower(Index y, Index m, double* row) {
    if constexpr (kSharesMean)
      for (Index r = 0; r < m; ++r)
        if (r != y) row[r] += row[y];
  }

  // The entries that move if a point whose projection is alpha moves a little (Python's Problem.face): those off their
  // bounds, and with them the own one.
  static void face(const double* alpha, Index y, double C, Index m, bool* free)
    requires(!kSharesMean)
  {
    bool any = false;
    for (Index r = 0; r < m; ++r) any |= free[r] = r != y && alpha[r] < 0.0 && alpha[r] > -Shape::most(C);
    free[y] = any;
  }

  // The violation of eight listed rows, given the largest gradient of a variable that may fall, the smallest of one
  // that may rise, and that of the own class, which may do both.
  static MULTIMARGIN_INLINE Eight worst(const Eight& top, const Eight& low, const Eight& own)
    requires(!kSharesMean)
  {
    return larger(top - own, own - low);
  }

  // How far a variable of a listed row may rise and fall.
  static double rise(double value, bool own, double /*C*/) { return own ? kInfinity : -value; }
  static double fall(double value, bool own, double C) { return own ? kInfinity : Shape::most(C) + value; }

  // Makes a listed row that is feasible up to rounding feasible to the last bit.
  void settle(Index own, double C, Index count, double* row) const {
    double sum = 0.0;
    for (Index c = 0; c < count; ++c) {
      if (c == own) continue;
      const double beta = box::snapped(-row[c], C, Shape::most(C));
      row[c] = 0.0 - beta;
      sum += beta;
    }
    row[own] = share_ * sum;
  }

 private:
  static double share_of(Index m) { return kSharesMean ? 1.0 / static_cast<double>(m) : 1.0; }

  static MULTIMARGIN_INLINE auto gamma_of(const double* G, Index own) {
    return [=, top = kSharesMean ? 0.0 : G[own]](Index c) { return top - G[c]; };
  }

  // beta_r = clip(a_r + c sigma, 0, most), a = beta_old - step gamma and sigma = sum beta - sum beta_old, with
  // c = -1 or 1/m: |delta alpha|^2 = |delta beta|^2 - c (sum delta beta)^2.
  void solve(const double* G, double step, Index own, double C, Index count, double* row) {
    auto gamma = gamma_of(G, own);
    const double c = kSharesMean ? share_ : -1.0;
    double before = 0.0;
    for (Index r = 0; r < count; ++r) {
      const double beta = -row[r];
      a_[r] = beta - step * gamma(r);
      before += r == own ? 0.0 : beta;
    }
    a_[own] = -kInfinity;
    const double* a = a_.data();
    const double sigma = clipped_sum_root(count, [a](Index r) { return a[r]; }, c, Shape::most(C), before);
    for (Index r = 0; r < count; ++r) row[r] = -(a[r] + c * sigma);
    settle(own, C, count, row);
  }

  // Moves to the linear minimiser if there is no curvature, else as far towards it as Frank-Wolfe goes.
  void go_to_vertex(const double* G, double k, Index own, double C, Index count, double* row) {
    auto gamma = gamma_of(G, own);
    auto beta = [row](Index r) { return -row[r]; };
    const double most = Shape::most_of_vertex(C), coupling = kSharesMean ? -share_ : 1.0;
    const double t =
        k > 0.0 ? box::frank_wolfe_length(count, beta, gamma, own, most, coupling, box::step_length(relax_, k)) : 1.0;
    for (Index r = 0; r < count; ++r)
      if (r != own) row[r] -= t * (box::vertex(-row[r], gamma(r), most) + row[r]);
    settle(own, C, count, row);
  }

  Update update_;
  double relax_, share_;
  std::vector<double> a_;
};

}  // namespace multimargin::machines
