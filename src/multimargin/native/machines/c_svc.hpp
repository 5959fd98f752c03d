// The binary machine with a free bias, C-SVC. Its one column is that of the second class in one-vs-rest: label 1 owns
// it, label 0 does not.
//
//     feasible       0 <= Y_i alpha_i <= C_i, Y_i = 2 y_i - 1, and sum_i alpha_i = 0
//     dual           D(alpha) = 1/2 <alpha, K alpha> - <Y, alpha>,  gradient G = K alpha - Y + b
//
// The sum couples the samples, so solvers of single rows do not apply. Only the measures of a row are here.
#pragma once

#include "machines/one_vs_rest.hpp"

namespace multimargin::machines {

struct CSvc {
  static constexpr std::string_view kName = "c-svc";

  static MULTIMARGIN_INLINE RowMeasure measure(const double* G, const double* alpha, Index y, double C, Index m) {
    return OneVsRest::measure(G, alpha, y - 1, C, m);
  }
};

}  // namespace multimargin::machines
