// Python bindings of descent by pairs: shapes, dtypes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bind/arrays.hpp"
#include "solvers/pair_descent.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace solvers;
namespace {

using State = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Kernel = nb::ndarray<nb::ndim<2>, nb::device::cpu>;  // rows contiguous but perhaps apart
using Store = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = ConstVectorOf<double>;
using Ids = ConstVectorOf<Index>;
using Scale = std::optional<ConstVectorOf<double>>;
using Found = std::tuple<Index, double, Index>;

bool all_within(const Index* values, Index count, Index least, Index end) {
  bool within = true;
  for (Index k = 0; k < count; ++k) within &= least <= values[k] && values[k] < end;
  return within;
}

void check_room(const Kernel& K, Index q, const WorkingSetKernel* kernel) {
  require(length(K, 1) == q && (q < 2 || K.stride(1) == 1), "K must have contiguous rows of one value a row of G");
  require(length(K) >= (kernel ? std::min(q, PairRows<float>::kLeastRoom) : q), "K has room for too few rows");
  require(!kernel || kernel->size() == q, "kernel must be of the samples of G");
}

void check_store(const Kernel& K, const Store& store, const Ids& slots, const Ids& columns, Index q) {
  require(store.dtype() == K.dtype(), "store must have the dtype of K");
  require(length(slots) == q && length(columns) == q, "slots and columns must have one value a row of G");
  require(all_within(slots.data(), q, -1, length(store)), "slots must be -1 or rows of store");
  require(all_within(columns.data(), q, 0, length(store, 1)), "columns must be columns of store");
}

void check_state(const State& G, const State& alpha, const Vector& diag, const Vector& low, const Vector& high) {
  const Index q = length(G);
  require(length(G, 1) == 1 && length(alpha, 1) == 1, "G and alpha must have one column");
  require(length(alpha) == q && length(diag) == q && length(low) == q && length(high) == q,
          "alpha, diag, low and high must have one value a row of G");
  bool feasible = true;
  for (Index i = 0; i < q; ++i) feasible &= low.data()[i] <= alpha.data()[i] && alpha.data()[i] <= high.data()[i];
  require(feasible, "alpha must be between low and high");
}

Found run_pair_descent(const Kernel& K, const Vector& diag, const State& G, const State& alpha, const Vector& low,
                        const Vector& high, double eps, Index max_iter, Index most_work, const WorkingSetKernel* kernel,
                        const std::optional<Store>& store, const std::optional<Ids>& slots,
                        const std::optional<Ids>& columns) {
  const Index q = length(G);
  check_state(G, alpha, diag, low, high);
  check_room(K, q, kernel);
  require(store.has_value() == slots.has_value() && store.has_value() == columns.has_value(),
          "store, slots and columns belong together");
  if (store) check_store(K, *store, *slots, *columns, q);
  require(eps >= 0.0, "eps must not be negative");
  require(max_iter >= 0, "max_iter must not be negative");
  const auto descend = [&]<class T>(std::type_identity<T>) {
    PairSource<T> source{kernel};
    if (store)
      source = {kernel, static_cast<const T*>(store->data()), store->stride(0), slots->data(), columns->data()};
    nb::gil_scoped_release released;
    PairRows<T> rows(static_cast<T*>(K.data()), K.stride(0), length(K), q, diag.data(), source);
    PairDescent<T> descent(q, rows, diag.data(), low.data(), high.data(), G.data(), alpha.data());
    const PairResult result = descent.run(eps, max_iter, most_work);
    return Found{result.steps, result.violation, result.work};
  };
  if (K.dtype() == nb::dtype<float>()) return descend(std::type_identity<float>{});
  if (K.dtype() == nb::dtype<double>()) return descend(std::type_identity<double>{});
  throw nb::type_error("kernel rows must be float32 or float64");
}

void make_working_set_kernel(WorkingSetKernel* self, const KernelSpec& spec, const Samples& samples, const Ids& ids,
                       const Scale& scale, int n_threads) {
  require(all_within(ids.data(), length(ids), 0, samples.n()), "ids must be rows of samples");
  require(!scale || length(*scale) == samples.n(), "scale: one value a sample expected");
  new (self) WorkingSetKernel(spec, samples, std::vector<Index>(ids.data(), ids.data() + length(ids)),
                         scale ? scale->data() : nullptr, checked_threads(n_threads));
}

}  // namespace

void bind_pair_descent(nb::module_& m) {
  nb::class_<WorkingSetKernel>(m, "WorkingSetKernel", "Kernel rows of the samples ids against each other, for pair_descent.")
      .def("__init__", &make_working_set_kernel, "spec"_a, "samples"_a, "ids"_a.noconvert(), "scale"_a.noconvert().none(),
           "n_threads"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 5>());
  m.def("pair_descent", &run_pair_descent, "K"_a.noconvert(), "diag"_a.noconvert(), "G"_a.noconvert(),
        "alpha"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "eps"_a, "max_iter"_a,
        "most_work"_a = std::numeric_limits<Index>::max(), "kernel"_a.none() = nb::none(),
        "store"_a.noconvert().none() = nb::none(), "slots"_a.noconvert().none() = nb::none(),
        "columns"_a.noconvert().none() = nb::none(),
        "Solves a block of one column with bounds and a fixed sum in place, by second-order pairs. K has all kernel rows "
        "or, with kernel, is room for some: a row that is needed is copied from store[slots[k], columns] or, where "
        "slots[k] is -1, computed. Returns (steps, violation, work).");
}

}  // namespace multimargin::bind
