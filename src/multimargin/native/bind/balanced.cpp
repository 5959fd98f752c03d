// Python bindings of the solvers for balanced blocks: shapes, dtypes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <string>
#include <tuple>

#include "bind/arrays.hpp"
#include "bind/kernel_rows.hpp"
#include "solvers/balanced_gradient.hpp"
#include "solvers/balanced_set.hpp"
#include "solvers/projected_gradient.hpp"
#include "solvers/subproblem.hpp"
#include "solvers/variable_projection.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace solvers;
namespace {

using ConstVector = ConstVectorOf<double>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void bind_project(const ConstVector& w, const ConstVector& low, const ConstVector& high, double total,
                  const std::string& method, const Vector& out) {
  require(length(low) == length(w) && length(high) == length(w) && length(out) == length(w),
          "w, low, high and out must have the same length");
  const BalancedRoot root = find_balanced_root(method);
  nb::gil_scoped_release released;
  BalancedSet(low.data(), high.data(), length(w), total, root).project(w.data(), out.data());
}

// Calls work(block, box) for the dtype of K; the box has the sum that alpha has.
template <class Work>
auto with_balanced_block(const KernelRows& K, const Matrix& G, const Matrix& alpha, const ConstVector& low,
                         const ConstVector& high, const std::string& projection, Work work) {
  const Index q = length(G);
  require(length(K) == q && length(K, 1) == q, "K must be square, with one row a row of G");
  require(length(G, 1) == 1 && length(alpha) == q && length(alpha, 1) == 1, "G and alpha must have one column");
  require(length(low) == q && length(high) == q, "low and high must have one value a row of G");
  const BalancedRoot root = find_balanced_root(projection);
  return with_rows(K, [&](const auto* first, Index stride) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(first)>>;
    nb::gil_scoped_release released;
    const Subproblem<T> block{q, 1, first, stride, G.data(), alpha.data(), nullptr, nullptr};
    return work(block, BalancedSet(low.data(), high.data(), q, sum_of(alpha.data(), q), root));
  });
}

std::tuple<Index, double> bind_variable_projection(const KernelRows& K, const Matrix& G, const Matrix& alpha,
                                                   const ConstVector& low, const ConstVector& high, double eps,
                                                   Index max_iter, double rho, Index period, double flat,
                                                   const std::string& projection, int n_threads) {
  require(eps >= 0.0 && max_iter >= 0, "eps and max_iter must not be negative");
  require(rho > 0.0 && period >= 1 && flat >= 0.0, "rho and period must be positive, and flat not negative");
  const ProjectionOptions options{eps, max_iter, rho, period, flat};
  const int threads = checked_threads(n_threads);
  return with_balanced_block(K, G, alpha, low, high, projection, [&](const auto& block, BalancedSet box) {
    const ProjectionResult result = VariableProjection(block, std::move(box), options, threads).run();
    return std::tuple(result.iterations, result.violation);
  });
}

std::tuple<Index, double> bind_balanced_gradient(const KernelRows& K, const Matrix& G, const Matrix& alpha,
                                                 const ConstVector& low, const ConstVector& high, double eps,
                                                 Index max_iter, double rho_min, double rho_max, Index memory,
                                                 Index patience, const std::string& initial_step,
                                                 const std::string& projection, int n_threads) {
  const GradientOptions options = gradient_options(eps, max_iter, rho_min, rho_max, memory, patience, initial_step);
  const int threads = checked_threads(n_threads);
  return with_balanced_block(K, G, alpha, low, high, projection, [&](const auto& block, BalancedSet box) {
    const GradientResult result = ProjectedGradient(BalancedBlock(block, std::move(box), threads), options).run();
    return std::tuple(result.iterations, result.measure);
  });
}

}  // namespace

void bind_balanced(nb::module_& m) {
  m.def("project_balanced", &bind_project, "w"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "total"_a,
        "method"_a, "out"_a.noconvert(), "Writes the nearest point to w with low <= z <= high, sum z = total to out.");
  m.def("variable_projection", &bind_variable_projection, "K"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(),
        "low"_a.noconvert(), "high"_a.noconvert(), "eps"_a, "max_iter"_a, "rho"_a, "period"_a, "flat"_a, "projection"_a,
        "n_threads"_a, "Solves the balanced block in place by variable projection; returns (iterations, violation).");
  m.def("balanced_gradient", &bind_balanced_gradient, "K"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(),
        "low"_a.noconvert(), "high"_a.noconvert(), "eps"_a, "max_iter"_a, "rho_min"_a, "rho_max"_a, "memory"_a,
        "patience"_a, "initial_step"_a, "projection"_a, "n_threads"_a,
        "Solves the balanced block in place by the projected gradient method; returns (iterations, violation).");
}

}  // namespace multimargin::bind
