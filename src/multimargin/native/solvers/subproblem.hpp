// The block subproblem that the descents and the projected gradient method solve:
//
//     minimise  1/2 <Delta, K Delta> + <G_old, Delta>  over  Delta = alpha - alpha_old,
//     every row alpha_i in the machine's feasible set,
//
// given K = K_WW, the start alpha_old and its gradient G_old. The solvers leave the result in alpha and its gradient
// G_old + K Delta in G.
#pragma once

#include "base/reduce.hpp"
#include "kernel/working_set_kernel.hpp"
#include "solvers/shared_columns.hpp"

namespace multimargin::solvers {

// The smallest violation that gradients in single precision can reach.
inline constexpr double kSingleEps = 1e-4;

using namespace kernel;

template <class T>
struct Subproblem {
  Index q, m;
  const T* K;  // (q, q), symmetric, rows K_stride apart; if others share the block, only this process's columns of it;
               // null if `kernel` computes what is needed
  Index K_stride;
  const double* diag;     // (q,), the diagonal of K; null if the solver does not need it
  double* G;              // (q, m)
  double* alpha;          // (q, m)
  const std::int32_t* y;  // (q,)
  const double* C;        // (q,)
  const SharedColumns* shared = nullptr;  // who has the other columns of K; null if all are here
  const WorkingSetKernel* kernel = nullptr;  // computes values of K; null if K is there

  Index columns() const { return shared ? shared->columns : q; }
};

// How a coordinate descent runs. Its work is counted in the time of a multiply-add.
struct DescentOptions {
  double eps;          // the violation to reach
  Index max_sweeps;    // at most so many sweeps over all samples
  Index most_work;     // ends with the sweep that reaches this much work
  std::string update;  // the one-sample solve, by name
  std::uint64_t seed;
  bool staged;   // begin with the largest violations and lower the threshold stage by stage
  double relax;  // factor of every step: 1 is the exact solve, less than 2 still descends
  double width;  // variables that a change of G by this much could move take part
  bool faces;     // conjugate gradients over the free variables between sweeps (face.hpp)
  bool spans;     // steps over what the sweeps did, between them (span_step.hpp)
  bool partners;  // steps of two samples (partners.hpp)
  bool whole;     // of a small block: looks at all samples instead of sweeps (whole_descent.hpp)
  int n_threads;
  double seconds;  // ends about when so much time has passed

  void check() const {
    if (!(eps >= 0.0 && width >= 0.0)) throw std::invalid_argument("eps and width must not be negative");
    if (!(0.0 < relax && relax < 2.0)) throw std::invalid_argument("relax must be between 0 and 2");
    if (n_threads < 1) throw std::invalid_argument("n_threads must be at least 1");
  }
};

// What a descent did.
struct DescentResult {
  Index sweeps = 0, updates = 0;
  double violation = 0.0;  // largest of any row, on the final gradient
  Index work = 0;          // in the time of a multiply-add
};

// What a projection method did.
struct IterationResult {
  Index iterations;
  double closeness;  // to the optimum: the violation, or the measure that the method bounds by eps
};

}  // namespace multimargin::solvers
