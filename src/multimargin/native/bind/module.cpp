// The Python module `multimargin._core`. Each file of this room registers one part of it.
//
// The native code lies in rooms, one folder and one namespace each. A room may include the rooms above it in this list
// and none below:
//
//     base       platform, threads, memory, random numbers, short reductions (an inline namespace: all rooms see it)
//     samples    rows of data in several layouts, and how two rows are compared
//     machines   the multiclass machines: feasible rows, measures and one-sample solves
//     kernel     kernel values from compared rows (includes samples)
//     state      gradient and measures of all samples
//     solvers    solvers of the block subproblem (include machines, kernel, state)
//     linear     the linear machine (includes machines)
//     bind       Python bindings (include all)
#include <nanobind/nanobind.h>

namespace multimargin::bind {
void bind_kernels(nanobind::module_& m);   // samples, kernel rows, scores, platform facts
void bind_solvers(nanobind::module_& m);   // violation, gradient, block solvers
void bind_balanced(nanobind::module_& m);  // block solvers of the machine whose samples are coupled
void bind_classes(nanobind::module_& m);   // descent class by class
void bind_linear(nanobind::module_& m);    // the linear machine
void bind_pair_descent(nanobind::module_& m);
}  // namespace multimargin::bind

NB_MODULE(_core, m) {
  using namespace multimargin::bind;
  m.doc() = "Native part of multimargin: kernel rows and block solvers.";
  bind_kernels(m);
  bind_solvers(m);
  bind_balanced(m);
  bind_classes(m);
  bind_linear(m);
  bind_pair_descent(m);
}
