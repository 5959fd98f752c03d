// The quadratic M-SVM2: the constraints of Lee, Lin & Wahba with a quadratic loss, that is, without an upper bound
// and with a ridge 1/(2 C_i) on the diagonal of the kernel.
//
//     feasible rows  alpha_r <= alpha_y, sum_r alpha_r = 0;  beta_r = alpha_y - alpha_r, so that
//                    alpha_y = 1/m sum_r beta_r
//     dual           D(alpha) = 1/2 <alpha, (K + R) alpha> - <T, alpha>,  R = diag(1/(2 C_i)), T = 1 on the own
//                    class, -kappa elsewhere; gradient G = (K + R) alpha - T, rows sum to zero; in beta: gamma = -G
//     optimal        iff gamma_r >= 0, and beta_r = 0 if gamma_r > 0
//
// Kernel blocks, diagonals and G include the ridge already: nothing here adds it.
#pragma once

#include "machines/wrong_classes.hpp"

namespace multimargin::machines {

struct Msvm2Shape {
  static constexpr std::string_view kName = "msvm2";
  static constexpr bool kSharesMean = true, kBounded = false;
  static double most(double /*C*/) { return kInfinity; }
  // The linear problem has no minimiser; Frank-Wolfe goes towards a beta this large (MSVMpack caps the variables
  // of its linear programs in the same way).
  static double most_of_vertex(double C) { return 1000.0 * C; }
  static double least_curvature(double C) { return 0.5 / C; }  // the ridge

  // g = L(s) + |alpha|^2 / (4C) - sum_{r != y} beta_r (s_r + kappa), where the loss L is itself a maximum over
  // beta'. Over the change d = beta' - beta >= -beta that is, without the difference of large numbers,
  //     g = max_d <G, d> - |Pi d|^2 / (4C),    |Pi d|^2 = |d|^2 - (sum d)^2 / m:
  // the gain of an exact update with the curvature of the ridge alone.
  template <class Beta, class Gamma>
  static MULTIMARGIN_INLINE double gain(Index m, Beta beta, Gamma gamma, Index y, double C) {
    const double c = 1.0 / static_cast<double>(m);
    const double before = sum_over(m, beta);
    auto a = [=](Index r) { return r == y ? -kInfinity : beta(r) - 2.0 * C * gamma(r); };
    const double sigma = clipped_sum_root(m, a, c, kInfinity, before);
    const double g = sum_over(m, [=](Index r) {
      const double target = a(r) + c * sigma, d = (target > 0.0 ? target : 0.0) - beta(r);
      return r == y ? 0.0 : -(gamma(r) + d / (4.0 * C)) * d;
    });
    return std::max(g + c * sigma * (sigma / (4.0 * C)), 0.0);
  }

  // v / kappa: g falls with the square of v, and would stop too early.
  static double progress(const RowMeasure& row, double /*C*/, Index m) {
    return static_cast<double>(m - 1) * row.violation;
  }
};

using Msvm2 = WrongClassMachine<Msvm2Shape>;

}  // namespace multimargin::machines
