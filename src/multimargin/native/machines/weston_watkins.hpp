// The machine of Weston & Watkins: a hinge for every wrong class.
//
//     feasible rows  -C <= alpha_r <= 0 (r != y), sum_r alpha_r = 0;  beta_r = -alpha_r, r != y
//     dual           D(alpha) = 1/2 <alpha, K alpha> - sum_i alpha_{i,y_i},  gradient G = K alpha - e_y,
//                    in beta: gamma_r = G_y - G_r
//     optimal        iff beta_r = 0 if gamma_r > 0, beta_r = C if gamma_r < 0
//     gap            g = sum_{r != y} (C - beta_r) [-gamma_r]_+ + beta_r [gamma_r]_+
#pragma once

#include "machines/wrong_classes.hpp"

namespace multimargin::machines {

struct WestonWatkinsShape : BoundedShape {
  static constexpr std::string_view kName = "weston-watkins";
  static constexpr bool kSharesMean = false;
};

using WestonWatkins = WrongClassMachine<WestonWatkinsShape>;

}  // namespace multimargin::machines
