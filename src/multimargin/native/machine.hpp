// What all machines share: how a row is measured, and which part of its values is rounding.
//
// A machine is a struct of what the solvers ask about one sample. Its row comes in two forms:
//
//     plain rows    alpha_i, all m classes, as Python has them: measure, project, move_towards, lift, lower
//     listed rows   the classes that take part in a descent (pairs.hpp): violation, minimise, settle
//
// Both are the same but for machines with kSharesMean (lee_lin_wahba.hpp, msvm2.hpp), whose rows have all classes
// coupled by their mean. They list all m, and their listed rows hold alpha_r - alpha_y and, for the own class,
// alpha_y: lift makes that of a plain row, and lower takes it back.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "platform.hpp"
#include "reduce.hpp"

namespace multimargin {

// How far a row is from optimal: violation v (psi) and gain g, its share of the duality gap.
struct RowMeasure {
  double violation, gain;
};

// A dual variable counts as off its bounds when it is further from them than this share of C.
inline constexpr double kActive = 1e-8;

// Values below this share of C are rounding noise; they become exact zeros.
inline constexpr double kSmallest = 1e-14;

// A change of alpha by one update that is not more than this is rounding, of alpha itself or of G.
inline double resolution(const double* G, double kii, double C, Index m) {
  const double largest = max_over(m, [=](Index r) { return std::abs(G[r]); });
  return kSmallest * std::max(C, kii > 0.0 ? largest / kii : 0.0);
}

// The choice of that name; std::invalid_argument, naming all of them, when there is none.
template <class Choices>
const auto& find_choice(const char* what, std::string_view name, const Choices& choices) {
  for (const auto& choice : choices)
    if (choice.name == name) return choice;
  std::string message = "unknown " + std::string(what) + " '" + std::string(name) + "'; choose one of";
  for (const auto& choice : choices) message += " '" + std::string(choice.name) + "'";
  throw std::invalid_argument(message);
}

}  // namespace multimargin
