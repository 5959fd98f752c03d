// One binary machine per class, all of them at once: every class against the rest.
//
//     loss           hinge          C sum_r [1 - Y_r s_r]_+
//                    squared hinge  C sum_r [1 - Y_r s_r]_+^2
//     feasible rows  0 <= Y_r alpha_r <= C (hinge) or < infinity (squared hinge), Y_r = 1 for the own class and -1 for
//                    the others;  beta_r = Y_r alpha_r
//     dual           D(alpha) = 1/2 <alpha, (K + R) alpha> - <Y, alpha>,  R = 0 (hinge) or diag(1/(2 C_i)),
//                    gradient G = (K + R) alpha - Y, in beta: gamma_r = Y_r G_r
//     optimal        iff beta_r = 0 if gamma_r > 0, beta_r = C if gamma_r < 0 (hinge) or gamma_r >= 0
//     gap            g = sum_r (C - beta_r) [-gamma_r]_+ + beta_r [gamma_r]_+, or SquaredHingeShape::gain_of
//
// The classes are independent: each variable of a row moves by itself. Whoever computes G and kii adds the ridge R.
#pragma once

#include "machines/box.hpp"

namespace multimargin::machines {

// What one variable beta adds to the primal if its margin is missed by so much (loss_of), and to the gap (gain_of).
struct HingeShape {
  static constexpr std::string_view kName = "one-vs-rest";
  static constexpr bool kBounded = true;
  static double most(double C) { return C; }
  static double ridge(double /*C*/) { return 0.0; }
  static double loss_of(double short_by, double C) { return C * std::max(short_by, 0.0); }
  static MULTIMARGIN_INLINE double gain_of(double beta, double gamma, double C) {
    return box::gain_of(beta, gamma, C);
  }
  static BoxUpdate find_update(std::string_view name) { return find_box_update(name); }
};

// With u = 1 - Y s = beta / 2C - gamma, by how much the margin is missed:
//     g = C [u]_+^2 + beta^2 / 4C - beta u  =  C gamma^2 if u >= 0,  beta (gamma - beta / 4C) otherwise.
struct SquaredHingeShape {
  static constexpr std::string_view kName = "squared-one-vs-rest";
  static constexpr bool kBounded = false;
  static double most(double /*C*/) { return kInfinity; }
  static double ridge(double C) { return 0.5 / C; }
  static double loss_of(double short_by, double C) { return short_by > 0.0 ? C * short_by * short_by : 0.0; }
  static MULTIMARGIN_INLINE double gain_of(double beta, double gamma, double C) {
    const double half = 0.5 * beta / C;
    return half >= gamma ? C * gamma * gamma : beta * (gamma - 0.5 * half);
  }
  // Its rows have no vertices that Frank-Wolfe could go to.
  static BoxUpdate find_update(std::string_view name) {
    static constexpr std::array<Choice<BoxUpdate>, 1> updates = {{{"sort", BoxUpdate::exact}}};
    return find_choice("update", name, updates).value;
  }
};

template <class Shape>
class OneVsRestMachine {
 public:
  using Update = BoxUpdate;
  static constexpr std::string_view kName = Shape::kName;
  static constexpr bool kBounded = Shape::kBounded;
  static constexpr bool kSharesMean = false;
  static constexpr bool kSumsToZero = false;  // rows of alpha
  static constexpr bool kTwoSided = true;     // a variable has both bounds
  static constexpr Index kLeastClasses = 1;   // listed, for a sample to move

  static Update find_update(std::string_view name) { return Shape::find_update(name); }

  // relax multiplies the step (1 is the exact solve, up to 2 still descends).
  OneVsRestMachine(Index /*m*/, Update update, std::uint64_t /*seed*/, double relax = 1.0)
      : update_(update), relax_(relax) {}

  // Y_r x_r: beta from alpha, gamma from G.
  static MULTIMARGIN_INLINE auto beta_of(const double* x, Index own) {
    return [=](Index r) { return r == own ? x[r] : -x[r]; };
  }

  static MULTIMARGIN_INLINE RowMeasure measure(const double* G, const double* alpha, Index y, double C, Index m) {
    const auto beta = beta_of(alpha, y), gamma = beta_of(G, y);
    const double gain = sum_over(m, [=](Index r) { return Shape::gain_of(beta(r), gamma(r), C); });
    return {box::violation<kBounded>(m, beta, gamma, -1, C, G), gain};
  }

  // How much gamma must change before a row alpha = 0 can move; minus the violation if it can.
  static MULTIMARGIN_INLINE double slack(const double* G, Index y, Index m) { return min_over(m, beta_of(G, y)); }

  static MULTIMARGIN_INLINE double violation(const double* G, const double* row, Index own, double C, Index count) {
    return box::violation<kBounded>(count, beta_of(row, own), beta_of(G, own), -1, C, G);
  }

  // g / c with c = m C, because g <= c v: the quantity that the projected gradient method bounds by eps.
  static double progress(const RowMeasure& row, double C, Index m) { return row.gain / (static_cast<double>(m) * C); }

  // The classes that can move soon: those off their bounds, and those that leave them if gamma moves by width.
  static auto listed(const double* G, const double* alpha, Index y, double C, Index /*m*/, double width) {
    return [=, beta = beta_of(alpha, y), gamma = beta_of(G, y)](Index r) {
      const double b = beta(r), g = gamma(r);
      return b == 0.0 ? g <= width : b < Shape::most(C) || g >= -width;
    };
  }

  // One-sample solve: reduces  <G, delta> + kii/(2 relax) |delta|^2  over alpha + delta feasible, by the chosen
  // update. kii <= 0 leaves a linear problem.
  void minimise(const double* G, double kii, Index own, double C, Index count, double* row) {
    if (!kBounded || (update_ == BoxUpdate::exact && kii > 0.0))
      project(G, box::step_length(relax_, kii), own, C, count, row);
    else
      go_to_vertex(G, kii, own, C, count, row);
  }

  // beta = clip(beta_old - step gamma, 0, most), class by class.
  void project(const double* G, double step, Index y, double C, Index m, double* alpha) {
    for (Index r = 0; r < m; ++r) {
      const double sign = r == y ? 1.0 : -1.0;
      alpha[r] = sign * box::snapped(sign * (alpha[r] - step * G[r]), C, Shape::most(C)) + 0.0;
    }
  }

  // alpha <- alpha + t (target - alpha), 0 < t < 1, for feasible rows. The result is feasible to the last bit.
  static void move_towards(const double* target, double t, Index y, double C, Index m, double* alpha) {
    const double most = Shape::most(C);
    for (Index r = 0; r < m; ++r)
      alpha[r] = std::clamp(alpha[r] + t * (target[r] - alpha[r]), r == y ? 0.0 : -most, r == y ? most : 0.0);
  }

  static void lift(Index, Index, double*) {}
  static void lower(Index, Index, double*) {}

  // The entries that move if a point whose projection is alpha moves a little (Python's Problem.face): those off their
  // bounds.
  static void face(const double* alpha, Index y, double C, Index m, bool* free) {
    for (Index r = 0; r < m; ++r) {
      const double beta = r == y ? alpha[r] : -alpha[r];
      free[r] = beta > 0.0 && beta < Shape::most(C);
    }
  }

  // How far a variable may rise and fall.
  static double rise(double value, bool own, double C) { return own ? Shape::most(C) - value : -value; }
  static double fall(double value, bool own, double C) { return own ? value : Shape::most(C) + value; }

  // Makes a row that is feasible up to rounding feasible to the last bit.
  void settle(Index own, double C, Index count, double* row) const {
    for (Index c = 0; c < count; ++c) {
      const double sign = c == own ? 1.0 : -1.0;
      row[c] = sign * box::snapped(sign * row[c], C, Shape::most(C)) + 0.0;
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

using OneVsRest = OneVsRestMachine<HingeShape>;
using SquaredOneVsRest = OneVsRestMachine<SquaredHingeShape>;

}  // namespace multimargin::machines
