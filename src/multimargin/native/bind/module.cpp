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
//     solvers    solvers of the block subproblem, Newton steps of all samples (include machines, kernel, state)
//     linear     the linear machine (includes machines)
//     files      data files in text: lines to arrays and back (includes base alone)
//     bind       Python bindings (include all)
#include <nanobind/nanobind.h>

namespace multimargin::bind {
void bind_kernel(nanobind::module_& m);
void bind_samples(nanobind::module_& m);  // and the platform
void bind_state(nanobind::module_& m);
void bind_descents(nanobind::module_& m);
void bind_projections(nanobind::module_& m);
void bind_pair_descent(nanobind::module_& m);
void bind_newton(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
void bind_files(nanobind::module_& m);
}  // namespace multimargin::bind

NB_MODULE(_core, m) {
  using namespace multimargin::bind;
  m.doc() = "Native part of multimargin: kernel rows and block solvers.";
  for (const auto bind : {bind_kernel, bind_samples, bind_state, bind_descents, bind_projections, bind_pair_descent,
                          bind_newton, bind_linear, bind_files})
    bind(m);
}
