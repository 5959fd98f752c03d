// The Python module `multimargin._core`: one function a concept registers its own part.
#include <nanobind/nanobind.h>

namespace multimargin {
void bind_kernels(nanobind::module_& m);  // samples, kernel blocks, scores, platform facts
void bind_solvers(nanobind::module_& m);  // violation, gradient, block solvers
void bind_balanced(nanobind::module_& m);  // block solvers of the machine whose samples are coupled
void bind_classes(nanobind::module_& m);   // descent class by class
void bind_linear(nanobind::module_& m);   // the linear machine
void bind_smo(nanobind::module_& m);      // descent by pairs
}  // namespace multimargin

NB_MODULE(_core, m) {
  m.doc() = "Native part of multimargin: kernel blocks and block solvers.";
  multimargin::bind_kernels(m);
  multimargin::bind_solvers(m);
  multimargin::bind_balanced(m);
  multimargin::bind_classes(m);
  multimargin::bind_linear(m);
  multimargin::bind_smo(m);
}
