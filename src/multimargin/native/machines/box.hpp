// Formulas shared by the machines with dual variables beta_r in [0, C] (or [0, infinity)). With the gradient gamma in
// beta, a row is optimal iff gamma_r >= 0 for beta_r = 0, gamma_r <= 0 for beta_r = C, and gamma_r = 0 in between. The
// updates are the exact solve, called "sort", and one step of Frank-Wolfe.
#pragma once

#include "base/reduce.hpp"
#include "machines/machine.hpp"

namespace multimargin::machines {

enum class BoxUpdate { exact, frank_wolfe };

inline BoxUpdate find_box_update(std::string_view name) {
  static constexpr std::array<Choice<BoxUpdate>, 2> updates = {
      {{"sort", BoxUpdate::exact}, {"frank-wolfe", BoxUpdate::frank_wolfe}}};
  return find_choice("update", name, updates).value;
}

namespace box {

inline constexpr Index kShort = 8;  // up to so many classes a plain loop is fastest

// v_r = [-gamma_r]_+ if beta_r < C (1 - 1e-8) or there is no upper bound, [gamma_r]_+ if beta_r > 1e-8 scale. The scale
// is C, unless all beta are known to be far below it.
template <bool bounded>
MULTIMARGIN_INLINE double violation_of(double beta, double gamma, double C, double scale) {
  const double low = kActive * scale, high = bounded ? C - kActive * C : kInfinity;
  const double up = beta < high ? -gamma : 0.0, down = beta > low ? gamma : 0.0;
  return up > down ? up : down;
}

// v = max_r v_r; the class `skip` has no beta. NaN if G[0] is NaN, which a maximum alone would not show.
template <bool bounded, class Beta, class Gamma>
MULTIMARGIN_INLINE double violation(Index n, Beta beta, Gamma gamma, Index skip, double C, const double* G) {
  auto term = [=](Index r) { return r == skip ? 0.0 : violation_of<bounded>(beta(r), gamma(r), C, C); };
  double worst = 0.0;
  if (n > kShort) {
    worst = std::max(worst, max_over(n, term));
  } else {
    for (Index r = 0; r < n; ++r) {
      const double value = term(r);
      worst = value > worst ? value : worst;
    }
  }
  return worst + 0.0 * G[0];
}

// (C - beta) [-gamma]_+ + beta [gamma]_+ of one variable.
MULTIMARGIN_INLINE double gain_of(double beta, double gamma, double C) {
  const double room = gamma < 0.0 ? C - beta : beta, slope = gamma < 0.0 ? -gamma : gamma;
  return room < 0.0 ? 0.0 : room * slope;
}

// g = sum_r (C - beta_r) [-gamma_r]_+ + beta_r [gamma_r]_+.
template <class Beta, class Gamma>
MULTIMARGIN_INLINE double gain(Index n, Beta beta, Gamma gamma, Index skip, double C) {
  return sum_over(n, [=](Index r) { return r == skip ? 0.0 : gain_of(beta(r), gamma(r), C); });
}

// The step of an update: relax / kii, finite.
inline double step_length(double relax, double kii) {
  return std::min(relax / kii, std::numeric_limits<double>::max());
}

// beta_r of the linear minimiser: the upper bound if gamma_r < 0, and 0 if gamma_r > 0.
inline double vertex(double beta, double gamma, double most) { return gamma < 0.0 ? most : gamma > 0.0 ? 0.0 : beta; }

// Frank-Wolfe: how far to go from beta towards the linear minimiser, d = vertex - beta,
//     t = min(1, -<gamma, d> / (k |d alpha|^2)),   |d alpha|^2 = |d|^2 + coupling (sum_r d_r)^2,
// with step = 1/k.
template <class Beta, class Gamma>
double frank_wolfe_length(Index n, Beta beta, Gamma gamma, Index skip, double most, double coupling, double step) {
  double slope = 0.0, square = 0.0, sum = 0.0;
  for (Index r = 0; r < n; ++r) {
    if (r == skip) continue;
    const double d = vertex(beta(r), gamma(r), most) - beta(r);
    slope -= gamma(r) * d;
    square += d * d;
    sum += d;
  }
  const double length = square + coupling * sum * sum;
  return slope > 0.0 && length > 0.0 ? std::min(1.0, slope * step / length) : 0.0;
}

// beta, set exactly to a bound if it differs from it by rounding noise only.
inline double snapped(double beta, double C, double most) {
  const double noise = kSmallest * C;
  return beta > noise ? (beta < most - noise ? beta : most) : 0.0;
}

}  // namespace box
}  // namespace multimargin::machines
