// One binary machine per class, all of them at once: every class against the rest.
//
//     feasible rows  0 <= Y_r alpha_r <= C, Y_r = 1 for the own class and -1 for the others;  beta_r = Y_r alpha_r
//     dual           D(alpha) = 1/2 <alpha, K alpha> - <Y, alpha>,  gradient G = K alpha - Y,
//                    in beta: gamma_r = Y_r G_r
//     optimal        iff beta_r = 0 if gamma_r > 0, beta_r = C if gamma_r < 0
//     gap            g = sum_r (C - beta_r) [-gamma_r]_+ + beta_r [gamma_r]_+
//
// The classes are independent: each variable of a row moves by itself.
#pragma once

#include "machines/box.hpp"

namespace multimargin::machines {

class OneVsRest {
 public:
  using Update = BoxUpdate;
  static constexpr std::string_view kName = "one-vs-rest";
  static constexpr bool kSharesMean = false;
  static constexpr bool kSumsToZero = false;  // rows of alpha
  static constexpr bool kTwoSided = true;     // a variable has both bounds
  static constexpr Index kLeastClasses = 1;   // listed, for a sample to move

  static Update find_update(std::string_view name) { return find_box_update(name); }

  // relax multiplies the step (1 is the exact solve, up to 2 still descends).
  OneVsRest(Index /*m*/, Update update, std::uint64_t /*seed*/, double relax = 1.0) : update_(update), relax_(relax) {}

  // Y_r x_r: beta from alpha, gamma from G.
  static MULTIMARGIN_INLINE auto beta_of(const double* x, Index own) {
    return [=](Index r) { return r == own ? x[r] : -x[r]; };
  }

  static MULTIMARGIN_INLINE RowMeasure measure(const double* G, const double* alpha, Index y, double C, Index m) {
    const auto beta = beta_of(alpha, y), gamma = beta_of(G, y);
    return {box::violation<true>(m, beta, gamma, -1, C, G), box::gain(m, beta, gamma, -1, C)};
  }

  // How much gamma must change before a row alpha = 0 can move; minus the violation if it can.
  static MULTIMARGIN_INLINE double slack(const double* G, Index y, Index m) { return min_over(m, beta_of(G, y)); }

  static MULTIMARGIN_INLINE double violation(const double* G, const double* row, Index own, double C, Index count) {
    return box::violation<true>(count, beta_of(row, own), beta_of(G, own), -1, C, G);
  }

  // g / c with c = m C, because g <= c v: the quantity that the projected gradient method bounds by eps.
  static double progress(const RowMeasure& row, double C, Index m) { return row.gain / (static_cast<double>(m) * C); }

  // The classes that can move soon: those off their bounds, and those that leave them if gamma moves by width.
  static auto listed(const double* G, const double* alpha, Index y, double C, Index /*m*/, double width) {
    return [=, beta = beta_of(alpha, y), gamma = beta_of(G, y)](Index r) {
      const double b = beta(r), g = gamma(r);
      return b == 0.0 ? g <= width : b < C || g >= -width;
    };
  }

  // One-sample solve: reduces  <G, delta> + kii/(2 relax) |delta|^2  over alpha + delta feasible, by the chosen
  // update. kii <= 0 leaves a linear problem.
  void minimise(const double* G, double kii, Index own, double C, Index count, double* row) {
    if (update_ == BoxUpdate::exact && kii > 0.0)
      project(G, box::step_length(relax_, kii), own, C, count, row);
    else
      go_to_vertex(G, kii, own, C, count, row);
  }

  // beta = clip(beta_old - step gamma, 0, C), class by class.
  void project(const double* G, double step, Index y, double C, Index m, double* alpha) {
    for (Index r = 0; r < m; ++r) {
      const double sign = r == y ? 1.0 : -1.0;
      alpha[r] = sign * box::snapped(sign * (alpha[r] - step * G[r]), C, C) + 0.0;
    }
  }

  // alpha <- alpha + t (target - alpha), 0 < t < 1, for feasible rows. The result is feasible to the last bit.
  static void move_towards(const double* target, double t, Index y, double C, Index m, double* alpha) {
    for (Index r = 0; r < m; ++r)
      alpha[r] = std::clamp(alpha[r] + t * (target[r] - alpha[r]), r == y ? 0.0 : -C, r == y ? C : 0.0);
  }

  static void lift(Index, Index, double*) {}
  static void lower(Index, Index, double*) {}

  // How far a variable may rise and fall.
  static double rise(double value, bool own, double C) { return own ? C - value : -value; }
  static double fall(double value, bool own, double C) { return own ? value : C + value; }

  // Makes a row that is feasible up to rounding feasible to the last bit.
  void settle(Index own, double C, Index count, double* row) const {
    for (Index c = 0; c < count; ++c) {
      const double sign = c == own ? 1.0 : -1.0;
      row[c] = sign * box::snapped(sign * row[c], C, C) + 0.0;
    }
  }

 private:
  void go_to_vertex(const double* G, double kii, Index own, double C, Index count, double* row) {
    auto gamma = beta_of(G, own), beta = beta_of(row, own);
    const double t =
        kii > 0.0 ? box::frank_wolfe_length(count, beta, gamma, -1, C, 0.0, box::step_length(relax_, kii)) : 1.0;
    for (Index r = 0; r < count; ++r) {
      const double sign = r == own ? 1.0 : -1.0, b = beta(r);
      row[r] = sign * (b + t * (box::vertex(b, gamma(r), C) - b));
    }
    settle(own, C, count, row);
  }

  Update update_;
  double relax_;
};

}  // namespace multimargin::machines
