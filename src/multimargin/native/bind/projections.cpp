// Python bindings of the projected gradient and variable projection methods: shapes, dtypes and the GIL; no
// mathematics.
#include "solvers/balanced_gradient.hpp"
#include "solvers/balanced_set.hpp"
#include "solvers/projected_gradient.hpp"
#include "solvers/variable_projection.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"
#include "machines/machines.hpp"

namespace multimargin::bind {
namespace {

using namespace machines;
using namespace solvers;

using Found = std::tuple<Index, double>;

Found found(const IterationResult& result) { return {result.iterations, result.closeness}; }

using Exchange = std::optional<nb::callable>;

// Null, or what completes products with K, of which this process has some columns; `exchange` must outlive it.
std::optional<SharedColumns> shared_columns(const KernelRows& K, const Exchange& exchange, Index q, Index m) {
  require(length(K) == q, "K must have one row per row of G");
  if (!exchange) {
    require(length(K, 1) == q, "K must be square, with one row per row of G");
    return std::nullopt;
  }
  const Index columns = length(K, 1);
  return SharedColumns{columns, [&exchange, columns, q, m](const double* part, double* whole) {
    nb::gil_scoped_acquire acquired;
    const std::size_t shape[2] = {static_cast<std::size_t>(columns), static_cast<std::size_t>(m)};
    const nb::ndarray<nb::numpy, const double, nb::ndim<2>> sent(part, 2, shape, nb::handle());
    const auto received = nb::cast<ConstMatrix>((*exchange)(sent));
    require(length(received) == q && length(received, 1) == m, "exchange must return one row per row of G");
    std::copy_n(received.data(), q * m, whole);
  }};
}

Found projected_gradient(const std::string& machine, const KernelRows& K, const Matrix& G, const Matrix& alpha,
                         const Labels& y, const ConstVector& C, const GradientOptions& options, int n_threads,
                         const Exchange& exchange) {
  nb::gil_scoped_release released;
  options.check();
  const int threads = checked_threads(n_threads);
  check_state(ConstMatrix(G), alpha, y, C);
  const Index q = length(G), m = length(G, 1);
  const std::optional<SharedColumns> shared = shared_columns(K, exchange, q, m);
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) {
    return with_rows(K, [&]<class T>(const T* first, Index stride) {
      const Subproblem<T> block{q, m, first, stride, nullptr, G.data(), alpha.data(), y.data(), C.data(),
                                shared ? &*shared : nullptr};
      RowwiseBlock<Machine, T> rows(block, Machine(m, Machine::find_update("sort"), 0), threads);
      return found(ProjectedGradient(std::move(rows), options).run());
    });
  });
}

// Calls work(block, feasible set) for the dtype of K; the set has the sum that alpha has.
template <class Work>
Found with_balanced_block(const KernelRows& K, const Matrix& G, const Matrix& alpha, const ConstVector& low,
                          const ConstVector& high, const std::string& projection, const Exchange& exchange,
                          Work work) {
  const Index q = length(G);
  const std::optional<SharedColumns> shared = shared_columns(K, exchange, q, 1);
  require(length(G, 1) == 1 && length(alpha) == q && length(alpha, 1) == 1, "G and alpha must have one column");
  require(length(low) == q && length(high) == q, "low and high must have one value per row of G");
  const BalancedRoot root = find_balanced_root(projection);
  return with_rows(K, [&]<class T>(const T* first, Index stride) {
    const Subproblem<T> block{q, 1, first, stride, nullptr, G.data(), alpha.data(), nullptr, nullptr,
                              shared ? &*shared : nullptr};
    return found(work(block, BalancedSet(low.data(), high.data(), q, sum_of(alpha.data(), q), root)));
  });
}

Found variable_projection(const KernelRows& K, const Matrix& G, const Matrix& alpha, const ConstVector& low,
                          const ConstVector& high, const ProjectionOptions& options, const std::string& projection,
                          int n_threads, const Exchange& exchange) {
  nb::gil_scoped_release released;
  options.check();
  const int threads = checked_threads(n_threads);
  return with_balanced_block(K, G, alpha, low, high, projection, exchange, [&](const auto& block, BalancedSet set) {
    return VariableProjection(block, std::move(set), options, threads).run();
  });
}

Found balanced_gradient(const KernelRows& K, const Matrix& G, const Matrix& alpha, const ConstVector& low,
                        const ConstVector& high, const GradientOptions& options, const std::string& projection,
                        int n_threads, const Exchange& exchange) {
  nb::gil_scoped_release released;
  options.check();
  const int threads = checked_threads(n_threads);
  return with_balanced_block(K, G, alpha, low, high, projection, exchange, [&](const auto& block, BalancedSet set) {
    return ProjectedGradient(BalancedBlock(block, std::move(set), threads), options).run();
  });
}

void project_balanced(const ConstVector& w, const ConstVector& low, const ConstVector& high, double total,
                      const std::string& method, const Vector& out) {
  nb::gil_scoped_release released;
  require(length(low) == length(w) && length(high) == length(w) && length(out) == length(w),
          "w, low, high and out must have the same length");
  const BalancedRoot root = find_balanced_root(method);
  BalancedSet(low.data(), high.data(), length(w), total, root).project(w.data(), out.data());
}

}  // namespace

void bind_projections(nb::module_& m) {
  nb::class_<GradientOptions>(m, "GradientOptions", "How the projected gradient method runs.")
      .def(nb::init<double, Index, double, double, Index, Index, std::string, double>(), nb::kw_only(), "eps"_a,
           "max_iter"_a, "rho_min"_a, "rho_max"_a, "memory"_a, "patience"_a, "initial_step"_a,
           "seconds"_a = kInfinity);
  nb::class_<ProjectionOptions>(m, "ProjectionOptions", "How the variable projection method runs.")
      .def(nb::init<double, Index, double, Index, double, double>(), nb::kw_only(), "eps"_a, "max_iter"_a, "rho"_a,
           "period"_a, "flat"_a, "seconds"_a = kInfinity);
  m.def("projected_gradient", &projected_gradient, "machine"_a, "K"_a.noconvert(), "G"_a.noconvert(),
        "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "options"_a, "n_threads"_a,
        "exchange"_a = nb::none(),
        "Solves the block in place by the projected gradient method; returns (iterations, max g_i / c_i). With "
        "exchange(part) -> whole, K has this process's columns, and products are put together from parts of all.");
  m.def("variable_projection", &variable_projection, "K"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(),
        "low"_a.noconvert(), "high"_a.noconvert(), "options"_a, "projection"_a, "n_threads"_a,
        "exchange"_a = nb::none(),
        "Solves the balanced block in place by variable projection; returns (iterations, violation).");
  m.def("balanced_gradient", &balanced_gradient, "K"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(),
        "low"_a.noconvert(), "high"_a.noconvert(), "options"_a, "projection"_a, "n_threads"_a,
        "exchange"_a = nb::none(),
        "Solves the balanced block in place by the projected gradient method; returns (iterations, violation).");
  m.def("project_balanced", &project_balanced, "w"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "total"_a,
        "method"_a, "out"_a.noconvert(), "Writes the nearest point to w with low <= z <= high, sum z = total to out.");
}

}  // namespace multimargin::bind
