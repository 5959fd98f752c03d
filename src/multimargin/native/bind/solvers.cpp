// Python bindings of the solver part: shapes, dtypes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/kernel_rows.hpp"
#include "kernel/kept_block.hpp"
#include "machines/machines.hpp"
#include "solvers/class_descent.hpp"
#include "solvers/coordinate_descent.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/projected_gradient.hpp"
#include "solvers/subproblem.hpp"
#include "solvers/tile_descent.hpp"
#include "state/gradient.hpp"
#include "state/measure.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace kernel;
using namespace machines;
using namespace solvers;
using namespace state;
namespace {

template <class T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<double, 2>;
using ConstMatrix = Array<const double, 2>;
using Vector = Array<double, 1>;
using ConstVector = Array<const double, 1>;
using Labels = Array<const std::int32_t, 1>;
using Ids = Array<const std::int64_t, 1>;
// Memory to write such rows to: a square, or a flat work space.
using KernelBlock = nb::ndarray<nb::ndim<2>, nb::device::cpu>;
using KernelRoom = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_ids(const Ids& ids, Index n, const char* message) {
  for (Index k = 0; k < length(ids); ++k) require(ids.data()[k] >= 0 && ids.data()[k] < n, message);
}

// The labels of the rows ids, or of all rows.
void check_labels(const Labels& y, Index m, const std::optional<Ids>& ids) {
  const Index count = ids ? length(*ids) : length(y);
  bool valid = true;
  for (Index k = 0; k < count; ++k) {
    const std::int32_t label = y.data()[ids ? ids->data()[k] : k];
    valid &= label >= 0 && label < m;
  }
  require(valid, "y must be in 0..m-1");
}

template <class A>
void check_shapes(const ConstMatrix& G, const A& alpha, const Labels& y, const ConstVector& C) {
  const Index n = length(G), m = length(G, 1);
  require(length(alpha) == n && length(alpha, 1) == m, "alpha must have the shape of G");
  require(length(y) == n, "y must have one label a row of G");
  require(length(C) == n, "C must have one value a row of G");
}

void check_state(const ConstMatrix& G, const Matrix& alpha, const Labels& y, const ConstVector& C) {
  check_shapes(G, alpha, y, C);
  require(length(G, 1) >= 2, "G needs at least two classes (columns)");
  check_labels(y, length(G, 1), std::nullopt);
  for (Index i = 0; i < length(C); ++i)
    require(C.data()[i] > 0.0 && std::isfinite(C.data()[i]), "C must be positive and finite");
}

void check_block(const KernelRows& K, const Matrix& G, const Matrix& alpha, const Labels& y, const ConstVector& C) {
  check_state(ConstMatrix(G), alpha, y, C);
  require(K.shape(0) == G.shape(0) && K.shape(1) == G.shape(0), "K must be square, with one row a row of G");
}

void bind_measure(const std::string& machine, const ConstMatrix& G, const ConstMatrix& alpha, const Labels& y,
                  const ConstVector& C, const std::optional<Ids>& ids, const Vector& psi, const Vector& gain,
                  int n_threads) {
  check_shapes(G, alpha, y, C);
  const bool binary = machine == CSvc::kName;
  require(binary ? length(G, 1) == 1 : length(G, 1) >= 2, "G needs a column a class, or one for c-svc");
  require(length(psi) == length(G) && length(gain) == length(G), "psi and gain must have one value a row of G");
  if (ids) check_ids(*ids, length(G), "ids must be rows of G");
  check_labels(y, binary ? 2 : length(G, 1), ids);
  const MeasureArrays arrays{length(G, 1), G.data(), alpha.data(), y.data(), C.data(), psi.data(), gain.data()};
  const int threads = checked_threads(n_threads);
  with_measured_machine(machine, [&](auto chosen) {
    using Machine = typename decltype(chosen)::type;
    nb::gil_scoped_release released;
    measure<Machine>(arrays, ids ? ids->data() : nullptr, ids ? length(*ids) : length(G), threads);
  });
}

void bind_update_gradient(const Matrix& G, const KernelRows& rows, const Ids& slots, const ConstMatrix& delta,
                          int n_threads) {
  require(rows.shape(1) == G.shape(0), "rows must have one column a row of G");
  require(delta.shape(0) == slots.shape(0) && delta.shape(1) == G.shape(1),
          "delta must have one row a slot and the columns of G");
  check_ids(slots, length(rows), "slots must be rows of rows");
  const int threads = checked_threads(n_threads);
  with_rows(rows, [&](const auto* first, Index stride) {
    nb::gil_scoped_release released;
    const SparseStep step(delta.data(), length(delta), length(delta, 1));
    if (step.rows() > 0)
      update_gradient(first, stride, slots.data(), step, length(G), length(G, 1), G.data(), threads);
  });
}

// Calls work(std::type_identity<Machine>{}, first element of K, row stride) for the machine and the dtype at hand.
template <class Work>
auto with_machine_and_rows(const std::string& machine, const KernelRows& K, Work work) {
  return with_machine(machine, [&](auto chosen) {
    return with_rows(K, [&](const auto* first, Index stride) { return work(chosen, first, stride); });
  });
}

std::tuple<Index, Index, double, Index> bind_coordinate_descent(
    const std::string& machine, const KernelRows& K, const ConstVector& diag, const Matrix& G, const Matrix& alpha,
    const Labels& y, const ConstVector& C, const std::string& update, double eps, Index max_sweeps, std::uint64_t seed,
    bool staged, double relax, double width, const std::optional<KernelRoom>& room, bool faces, Index most_work,
    int n_threads) {
  check_block(K, G, alpha, y, C);
  require(length(diag) == length(G), "diag must have one value a row of G");
  require(eps >= 0.0 && width >= 0.0, "eps and width must not be negative");
  require(0.0 < relax && relax < 2.0, "relax must be between 0 and 2");
  require(!room || room->dtype() == K.dtype(), "room must have the dtype of K");
  const int threads = checked_threads(n_threads);
  return with_machine_and_rows(machine, K, [&](auto chosen, const auto* first, Index stride) {
    using Machine = typename decltype(chosen)::type;
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(first)>>;
    const auto step = Machine::find_update(update);
    T* space = room ? static_cast<T*>(room->data()) : nullptr;
    const Index size = room ? length(*room) : 0;
    nb::gil_scoped_release released;
    const Subproblem<T> block{length(G), length(G, 1), first, stride, G.data(), alpha.data(), y.data(), C.data()};
    Machine solver(block.m, step, seed + 1, relax);
    DescentResult result;
    if constexpr (Machine::kSharesMean) {
      TileDescent<Machine, T> descent(block, diag.data(), std::move(solver), seed, threads);
      result = descent.run(eps, max_sweeps, most_work);
    } else if constexpr (!Machine::kSumsToZero) {
      std::vector<Index> ids(static_cast<std::size_t>(block.q));
      std::iota(ids.begin(), ids.end(), Index{0});
      std::vector<ClassRows<T>> rows(static_cast<std::size_t>(block.m), ClassRows<T>(size / block.m));
      ClassDescent<Machine, T> descent(block, {first, stride, ids.data(), ids.data()}, block.q, diag.data(),
                                       std::move(solver), rows);
      const Index entries = descent.list(width);
      result = descent.run({eps, max_sweeps, most_work, staged, faces}, entries >= block.q * block.q, threads);
    } else {
      CoordinateDescent<Machine, T> descent(block, diag.data(), std::move(solver),
                                            ListedVariables<Machine, T>(block, width, space, size), seed, faces);
      result = descent.run(eps, max_sweeps, most_work, staged);
    }
    return std::tuple(result.sweeps, result.updates, result.violation, result.work);
  });
}

void bind_extend_block(const KernelBlock& K, Index old, const KernelRows& rows, const Ids& slots, const Ids& members,
                       int n_threads) {
  const Index count = length(members);
  require(0 <= old && old <= count && count <= length(K) && count <= length(K, 1), "K has no room for all members");
  require(length(slots) == count - old, "slots must have one row for each new member");
  require(K.stride(1) == 1 && K.dtype() == rows.dtype(), "K must have contiguous rows and the dtype of rows");
  check_ids(slots, length(rows), "slots must be rows of rows");
  check_ids(members, length(rows, 1), "members must be columns of rows");
  const int threads = checked_threads(n_threads);
  with_rows(rows, [&](const auto* first, Index stride) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(first)>>;
    nb::gil_scoped_release released;
    extend_block(static_cast<T*>(K.data()), K.stride(0), old, first, stride, slots.data(), members.data(), count,
                 threads);
  });
}

// Calls work(first value) for the dtype at hand.
template <class Array, class Work>
void with_values(const Array& values, Work work) {
  if (values.dtype() == nb::dtype<float>()) return work(static_cast<float*>(values.data()));
  if (values.dtype() == nb::dtype<double>()) return work(static_cast<double*>(values.data()));
  throw nb::type_error("kernel values must be float32 or float64");
}

void bind_widen_block(const KernelRoom& values, Index count, Index old_stride, Index new_stride) {
  require(0 <= count && count <= old_stride && old_stride <= new_stride, "count <= old_stride <= new_stride must hold");
  require(count == 0 || (count - 1) * new_stride + count <= length(values), "values has no room for the wider rows");
  with_values(values, [&](auto* first) { widen_block(first, count, old_stride, new_stride); });
}

void bind_retain_block(const KernelBlock& K, const Ids& kept) {
  require(length(K) == 0 || K.stride(1) == 1, "K must have contiguous rows");
  check_ids(kept, std::min(length(K), length(K, 1)), "kept must be rows of K");
  for (Index k = 1; k < length(kept); ++k) require(kept.data()[k - 1] < kept.data()[k], "kept must ascend");
  with_values(K, [&](auto* first) { retain_block(first, K.stride(0), kept.data(), length(kept)); });
}

std::tuple<Index, double> bind_projected_gradient(const std::string& machine, const KernelRows& K, const Matrix& G,
                                                  const Matrix& alpha, const Labels& y, const ConstVector& C,
                                                  double eps, Index max_iter, double rho_min, double rho_max,
                                                  Index memory, Index patience, const std::string& initial_step) {
  check_block(K, G, alpha, y, C);
  const GradientOptions options = gradient_options(eps, max_iter, rho_min, rho_max, memory, patience, initial_step);
  return with_machine_and_rows(machine, K, [&](auto chosen, const auto* first, Index stride) {
    using Machine = typename decltype(chosen)::type;
    nb::gil_scoped_release released;
    const Index q = length(G), m = length(G, 1);
    Subproblem<double> block{q, m, nullptr, stride, G.data(), alpha.data(), y.data(), C.data()};
    std::vector<double> converted;
    if constexpr (std::is_same_v<decltype(first), const double*>) {
      block.K = first;
    } else {
      for (Index i = 0; i < q; ++i) converted.insert(converted.end(), first + i * stride, first + i * stride + q);
      block.K = converted.data();
      block.K_stride = q;
    }
    ProjectedGradient method(RowwiseBlock<Machine>(block, Machine(m, Machine::find_update("sort"), 0)), options);
    const GradientResult result = method.run();
    return std::tuple(result.iterations, result.measure);
  });
}

void bind_update_samples(const std::string& machine, const std::string& update, const Matrix& alpha,
                         const ConstMatrix& G, const Labels& y, const ConstVector& C, const ConstVector& kii,
                         std::uint64_t seed) {
  check_state(G, alpha, y, C);
  require(length(kii) == length(G), "kii must have one value a row of G");
  const Index m = length(G, 1);
  with_machine(machine, [&](auto chosen) {
    using Machine = typename decltype(chosen)::type;
    Machine one(m, Machine::find_update(update), seed);
    nb::gil_scoped_release released;
    for (Index i = 0; i < length(G); ++i) {
      const Index own = y.data()[i];
      double* row = alpha.data() + i * m;
      Machine::lift(own, m, row);
      one.minimise(G.data() + i * m, kii.data()[i], own, C.data()[i], m, row);
      Machine::lower(own, m, row);
    }
  });
}

}  // namespace

// Arrays are never converted: a wrong dtype or layout is a TypeError, because results come back in
// the caller's arrays.
void bind_solvers(nb::module_& m) {
  m.def("measure", &bind_measure, "machine"_a, "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(),
        "C"_a.noconvert(), "ids"_a.noconvert().none(), "psi"_a.noconvert(), "gain"_a.noconvert(), "n_threads"_a,
        "Violation psi_i and gain g_i of the rows ids (None: all), written to psi and gain.");
  m.def("update_gradient", &bind_update_gradient, "G"_a.noconvert(), "rows"_a.noconvert(), "slots"_a.noconvert(),
        "delta"_a.noconvert(), "n_threads"_a, "G[j, :] += sum_k rows[slots[k], j] delta[k, :].");
  m.def("coordinate_descent", &bind_coordinate_descent, "machine"_a, "K"_a.noconvert(), "diag"_a.noconvert(),
        "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "update"_a, "eps"_a, "max_sweeps"_a, "seed"_a,
        "staged"_a, "relax"_a = 1.0, "width"_a = kInfinity, "room"_a.noconvert().none() = nb::none(),
        "faces"_a = false, "most_work"_a = std::numeric_limits<Index>::max(),
        "n_threads"_a = 1,
        "Solves the block in place by coordinate descent over the pairs that a change of G by width could move, with "
        "faces by conjugate gradients in between; machines whose steps change all classes of a sample go by tiles of "
        "samples instead, on threads. Returns (sweeps, updates, violation, work).");
  m.def("widen_block", &bind_widen_block, "values"_a.noconvert(), "count"_a, "old_stride"_a, "new_stride"_a,
        "Moves the rows of a square block in the flat array values further apart.");
  m.def("retain_block", &bind_retain_block, "K"_a.noconvert(), "kept"_a.noconvert(),
        "K[i, j] = K[kept[i], kept[j]] in place.");
  m.def("extend_block", &bind_extend_block, "K"_a.noconvert(), "old"_a, "rows"_a.noconvert(), "slots"_a.noconvert(),
        "members"_a.noconvert(), "n_threads"_a,
        "K[p, j] = K[j, p] = rows[slots[p - old], members[j]] for old <= p < len(members), j < len(members).");
  m.def("projected_gradient", &bind_projected_gradient, "machine"_a, "K"_a.noconvert(), "G"_a.noconvert(),
        "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "eps"_a, "max_iter"_a, "rho_min"_a, "rho_max"_a, "memory"_a,
        "patience"_a, "initial_step"_a,
        "Solves the block in place by the projected gradient method; returns (iterations, max g_i / c_i).");
  m.def("update_samples", &bind_update_samples, "machine"_a, "update"_a, "alpha"_a.noconvert(), "G"_a.noconvert(),
        "y"_a.noconvert(), "C"_a.noconvert(), "kii"_a.noconvert(), "seed"_a,
        "Applies one single-sample update to every row of alpha, in place; G is only read.");
}

}  // namespace multimargin::bind
