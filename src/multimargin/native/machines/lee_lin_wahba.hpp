// The machine of Lee, Lin & Wahba: the score of every wrong class below -kappa = -1/(m-1), scores that sum to zero.
//
//     feasible rows  0 <= alpha_y - alpha_r <= C, sum_r alpha_r = 0;  beta_r = alpha_y - alpha_r, so that
//                    alpha_y = 1/m sum_r beta_r
//     dual           D(alpha) = 1/2 <alpha, K alpha> - <T, alpha>,  T = 1 on the own class, -kappa elsewhere,
//                    gradient G = K alpha - T, whose rows sum to zero; in beta: gamma_r = -G_r
//     optimal        iff beta_r = 0 if gamma_r > 0, beta_r = C if gamma_r < 0
//     gap            g = sum_{r != y} (C - beta_r) [-gamma_r]_+ + beta_r [gamma_r]_+
#pragma once

#include "machines/wrong_classes.hpp"

namespace multimargin::machines {

struct LeeLinWahbaShape : BoundedShape {
  static constexpr std::string_view kName = "lee-lin-wahba";
  static constexpr bool kSharesMean = true;
};

using LeeLinWahba = WrongClassMachine<LeeLinWahbaShape>;

}  // namespace multimargin::machines
