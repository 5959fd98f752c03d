// Python bindings of the linear machine: shapes, dtypes, lifetimes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "bind/arrays.hpp"
#include "linear/pass_runner.hpp"
#include "linear/problem.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace linear;
namespace {

template <class T>
using Vector = ConstVectorOf<T>;
using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class W>
using Weights = nb::ndarray<W, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class W>
LinearWeights<W> view(const LinearProblem& problem, const Weights<W>& weights) {
  const Index features = problem.rows().features(), width = length(weights, 1);
  const Index blocks = features > 0 ? length(weights) / features : 1;
  require(length(weights) == blocks * features && width % kClassLanes == 0 && width * blocks >= problem.m(),
          "weights must have one row a feature, or some blocks of that, and all classes in rows of a multiple of 8");
  return {weights.data(), features, width, blocks};
}

void check_samples(const Vector<std::int32_t>& y, const Vector<double>& C, Index n, Index m, int n_threads, int parts) {
  checked_threads(n_threads);
  checked_threads(parts);
  require(m >= 2, "m must be at least 2");
  require(length(y) == n && length(C) == n, "y and C must have one value a row");
  for (Index i = 0; i < n; ++i) {
    require(y.data()[i] >= 0 && y.data()[i] < m, "labels must be in 0..m-1");
    require(C.data()[i] > 0.0 && std::isfinite(C.data()[i]), "costs must be positive and finite");
  }
}

void dense_problem(LinearProblem* self, const AnyMatrix& X, const Vector<std::int32_t>& y, const Vector<double>& C, Index m,
                   double constant, int n_threads, int parts) {
  const Index n = length(X), d = length(X, 1);
  check_samples(y, C, n, m, n_threads, parts);
  std::unique_ptr<LinearRows> rows;
  if (X.dtype() == nb::dtype<float>())
    rows = std::make_unique<DenseLinearRows<float>>(static_cast<const float*>(X.data()), n, d, constant);
  else if (X.dtype() == nb::dtype<double>())
    rows = std::make_unique<DenseLinearRows<double>>(static_cast<const double*>(X.data()), n, d, constant);
  else
    throw nb::type_error("X must be float32 or float64");
  nb::gil_scoped_release released;
  new (self) LinearProblem(std::move(rows), m, y.data(), C.data(), n_threads, parts);
}

template <class T, class I>
std::unique_ptr<LinearRows> sparse_rows(const AnyVector& data, const Vector<I>& indices, const Vector<I>& indptr, Index d,
                                        double constant) {
  const Index n = length(indptr) - 1;
  require(n >= 0 && indptr.data()[0] >= 0 && static_cast<Index>(indptr.data()[n]) <= length(data),
          "indptr must stay within data");
  for (Index i = 0; i < n; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
  for (Index k = static_cast<Index>(indptr.data()[0]); k < static_cast<Index>(indptr.data()[n]); ++k)
    require(indices.data()[k] >= 0 && static_cast<Index>(indices.data()[k]) < d, "column indices must be in 0..d-1");
  return std::make_unique<SparseLinearRows<T, I>>(static_cast<const T*>(data.data()), indices.data(), indptr.data(), n, d,
                                                  constant);
}

template <class I>
void sparse_problem(LinearProblem* self, const AnyVector& data, const Vector<I>& indices, const Vector<I>& indptr, Index d,
                    const Vector<std::int32_t>& y, const Vector<double>& C, Index m, double constant,
                    int n_threads, int parts) {
  require(length(indices) == length(data), "indices and data must have the same length");
  std::unique_ptr<LinearRows> rows;
  if (data.dtype() == nb::dtype<float>())
    rows = sparse_rows<float, I>(data, indices, indptr, d, constant);
  else if (data.dtype() == nb::dtype<double>())
    rows = sparse_rows<double, I>(data, indices, indptr, d, constant);
  else
    throw nb::type_error("data must be float32 or float64");
  check_samples(y, C, rows->rows(), m, n_threads, parts);
  nb::gil_scoped_release released;
  new (self) LinearProblem(std::move(rows), m, y.data(), C.data(), n_threads, parts);
}

template <class W>
auto bind_measure(LinearProblem& problem, const Weights<W>& weights, Index step) {
  require(step >= 1, "step must be at least 1");
  const LinearWeights<W> w = view(problem, weights);
  nb::gil_scoped_release released;
  const LinearMeasure found = problem.measure(w, step);
  return std::tuple(found.violation, found.gain, found.gap, found.loss);
}

template <class W>
void bind_rebuild(const LinearProblem& problem, const Weights<W>& weights) {
  const LinearWeights<W> w = view(problem, weights);
  nb::gil_scoped_release released;
  problem.rebuild(w);
}

template <class W>
double bind_norm(const ConstMatrixOf<W>& weights, int n_threads) {
  checked_threads(n_threads);
  nb::gil_scoped_release released;
  return squared_norm(weights.data(), length(weights) * length(weights, 1), n_threads);
}

// alpha as CSR: (indptr, classes, values), the label's entry of a row first.
nb::tuple dual_arrays(const LinearProblem& problem) {
  const SparseDual& dual = problem.dual();
  const Index n = dual.size();
  Index total = 0;
  for (Index i = 0; i < n; ++i) total += dual.own(i) != 0.0 ? dual.count(i) + 1 : 0;
  auto* indptr = new std::int64_t[static_cast<std::size_t>(n + 1)];
  nb::capsule free_indptr(indptr, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  auto* classes = new std::int32_t[static_cast<std::size_t>(total)];
  nb::capsule free_classes(classes, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
  auto* values = new double[static_cast<std::size_t>(total)];
  nb::capsule free_values(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  Index k = 0;
  for (Index i = 0; i < n; ++i) {
    indptr[i] = k;
    if (dual.own(i) == 0.0) continue;
    classes[k] = problem.y()[i];
    values[k++] = dual.own(i);
    for (Index e = 0; e < dual.count(i); ++e, ++k) {
      classes[k] = dual.entries(i)[e].r;
      values[k] = dual.entries(i)[e].alpha;
    }
  }
  indptr[n] = k;
  const std::size_t rows = static_cast<std::size_t>(n + 1), size = static_cast<std::size_t>(total);
  return nb::make_tuple(nb::ndarray<nb::numpy, std::int64_t>(indptr, {rows}, free_indptr),
                        nb::ndarray<nb::numpy, std::int32_t>(classes, {size}, free_classes),
                        nb::ndarray<nb::numpy, double>(values, {size}, free_values));
}

// Takes a feasible alpha over: entries off the label as CSR; the label's are their sums.
void set_dual(LinearProblem& problem, const Vector<std::int64_t>& indptr, const Vector<std::int32_t>& classes,
              const Vector<double>& values) {
  SparseDual& dual = problem.dual();
  const LabelledRows task = problem.task();
  require(length(indptr) == dual.size() + 1 && indptr.data()[0] == 0 && indptr.data()[dual.size()] == length(classes) &&
              length(classes) == length(values),
          "indptr, classes and values must be CSR with one row a sample");
  for (Index i = 0; i < dual.size(); ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
  std::vector<SparseDual::Entry> entries;
  for (Index i = 0; i < dual.size(); ++i) {
    require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
    entries.clear();
    double own = 0.0;
    for (Index k = indptr.data()[i]; k < indptr.data()[i + 1]; ++k) {
      const std::int32_t r = classes.data()[k];
      require(r >= 0 && r < task.m && r != task.y[i] && values.data()[k] <= 0.0,
              "entries must be of other classes than the label, and not positive");
      if (values.data()[k] == 0.0) continue;
      entries.push_back({r, values.data()[k]});
      own -= values.data()[k];
    }
    require(own <= task.C[i] * (1.0 + 1e-12), "a row of alpha must not exceed its cost");
    dual.set(i, std::min(own, task.C[i]), entries.data(), static_cast<Index>(entries.size()));
  }
}

double dual_sum(const LinearProblem& problem) {
  double sum = 0.0;
  for (Index i = 0; i < problem.dual().size(); ++i) sum += problem.dual().own(i);
  return sum;
}

template <class W>
void bind_descent(nb::module_& m, const char* name) {
  using Descent = PassRunner<W>;
  nb::class_<Descent>(m, name)
      .def(
          "__init__",
          [](Descent* self, LinearProblem& problem, const Weights<W>& weights, const std::string& update,
             double tau, std::uint64_t seed, bool together) {
            require(tau >= 0.0, "tau must not be negative");
            const LinearWeights<W> w = view(problem, weights);
            new (self) Descent(problem.task(), w, &problem.dual(), {find_simplex_update(update), tau}, seed,
                               together);
          },
          "problem"_a, "weights"_a.noconvert(), "update"_a, "tau"_a, "seed"_a, "together"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("part", &Descent::part, "Goes on without threads.")
      .def(
          "run",
          [](Descent& self, bool all, double threshold, double relax, double margin, bool shuffle) {
            require(threshold >= 0.0 && margin >= 0.0, "threshold and margin must not be negative");
            require(0.0 < relax && relax < 2.0, "relax must be between 0 and 2");
            nb::gil_scoped_release released;
            const PassResult r = self.pass(all, {threshold, relax, margin, shuffle});
            return std::tuple(r.visits, r.updates, r.active, r.violation, r.total, r.change, r.gap);
          },
          "all"_a, "threshold"_a, "relax"_a, "margin"_a, "shuffle"_a,
          "One pass, over all samples or the active ones; returns (visits, updates, active, violation, total, "
          "change of the dual, gap as far as seen).");
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<LinearProblem>(m, "LinearProblem")
      .def("__init__", &dense_problem, "X"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "m"_a, "constant"_a, "n_threads"_a, "parts"_a = 1,
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def("__init__", &sparse_problem<std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
           "d"_a, "y"_a.noconvert(), "C"_a.noconvert(), "m"_a, "constant"_a, "n_threads"_a, "parts"_a = 1, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
           nb::keep_alive<1, 4>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
      .def("__init__", &sparse_problem<std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
           "d"_a, "y"_a.noconvert(), "C"_a.noconvert(), "m"_a, "constant"_a, "n_threads"_a, "parts"_a = 1, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
           nb::keep_alive<1, 4>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
      .def("measure", &bind_measure<float>, "weights"_a.noconvert(), "step"_a = 1)
      .def("measure", &bind_measure<double>, "weights"_a.noconvert(), "step"_a = 1,
           "Every step-th sample with fixed weights: (largest violation, largest gain / C, gap, loss), the last two as sums.")
      .def("rebuild", &bind_rebuild<float>, "weights"_a.noconvert())
      .def("rebuild", &bind_rebuild<double>, "weights"_a.noconvert(), "Computes the weights from the dual alone.")
      .def("dual", &dual_arrays, "alpha as (indptr, classes, values).")
      .def("set_dual", &set_dual, "indptr"_a.noconvert(), "classes"_a.noconvert(), "values"_a.noconvert())
      .def("dual_sum", &dual_sum, "sum_i alpha_{i,y_i}")
      .def("support", [](const LinearProblem& problem) { return problem.dual().support(); }, "Number of samples with alpha_i != 0.");
  m.def("squared_norm", &bind_norm<float>, "weights"_a.noconvert(), "n_threads"_a = 1);
  m.def("squared_norm", &bind_norm<double>, "weights"_a.noconvert(), "n_threads"_a = 1, "|W|^2 in float64.");
  bind_descent<float>(m, "PassRunner32");
  bind_descent<double>(m, "PassRunner64");
}

}  // namespace multimargin::bind
