// The block subproblem that coordinate descent and the projected gradient method solve:
//
//     minimise  1/2 <Delta, K Delta> + <G_old, Delta>  over  Delta = alpha - alpha_old,
//     every row alpha_i in the machine's feasible set,
//
// given K = K_WW, the gradient G_old at the start and the start alpha_old itself. Both solvers
// leave the result in alpha and its gradient G_old + K Delta in G.
#pragma once

#include <cstdint>

#include "base/platform.hpp"

namespace multimargin::solvers {

template <class T>
struct Subproblem {
  Index q, m;
  const T* K;  // (q, q), symmetric, rows K_stride apart
  Index K_stride;
  double* G;              // (q, m)
  double* alpha;          // (q, m)
  const std::int32_t* y;  // (q,)
  const double* C;        // (q,)
};

// What a descent made.
struct DescentResult {
  Index sweeps, updates;
  double violation;  // largest of any row, on the final gradient
  Index work;        // in the time of a multiply-add
};

}  // namespace multimargin::solvers
