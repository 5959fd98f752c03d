// What all machines share: how a row is measured, and which part of its values is rounding.
//
// A machine is a class with the operations on one sample that the solvers need. A sample's row has two forms:
//
//     plain rows    alpha_i, all m classes, as in Python: measure, project, move_towards, lift, lower
//     listed rows   the classes that take part in a descent (solvers/listed_variables.hpp): violation, minimise, settle
//
// The two differ only for machines with kSharesMean (lee_lin_wahba.hpp, msvm2.hpp), whose classes are coupled by their
// mean. These list all m classes, and their listed rows hold alpha_r - alpha_y and, for the own class, alpha_y: lift
// turns a plain row into a listed one, lower does the reverse.
#pragma once

#include "base/choice.hpp"
#include "base/reduce.hpp"

namespace multimargin::machines {

// How far a row is from optimal: violation v (psi) and gain g, its share of the duality gap.
struct RowMeasure {
  double violation, gain;
};

// A dual variable counts as off its bounds if it is further from them than this share of C.
inline constexpr double kActive = 1e-8;

// Values below this share of C are rounding noise; they become exact zeros.
inline constexpr double kSmallest = 1e-14;

// Rows that a machine can project at a time, in lanes; 0 if it cannot.
template <class Machine>
inline constexpr Index kRowsTogether = [] {
  if constexpr (requires { Machine::kTogether; }) return Machine::kTogether;
  return Index{0};
}();

// A change of alpha by one update of at most this size is rounding, of alpha itself or of G. If C kii is tiny, even a
// step from bound to bound hardly changes G: it counts all the same.
inline double resolution(const double* G, double kii, double C, Index m) {
  const double largest = max_over(m, [=](Index r) { return std::abs(G[r]); });
  return kSmallest * std::clamp(kii > 0.0 ? largest / kii : 0.0, C, 1e10 * C);
}

// Solves for one listed row: next is the new alpha. False if the change is below the machine's resolution: it must be
// dropped, because repeating it would never end.
template <class Machine>
bool solve_row(Machine& machine, const double* G, const double* alpha, double kii, Index own, double C, Index count,
               double* next) {
  std::copy(alpha, alpha + count, next);
  machine.minimise(G, kii, own, C, count, next);
  const double largest = max_over(count, [=](Index c) { return std::abs(next[c] - alpha[c]); });
  return largest > resolution(G, kii, C, count);
}

}  // namespace multimargin::machines
