// Python bindings of pair descent: shapes, dtypes and the GIL; no mathematics.
#include "solvers/pair_descent.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"

namespace multimargin::bind {
namespace {

using namespace solvers;

using Found = std::tuple<Index, double, Index>;

void check_room(const WritableKernelRows& K, Index q, const kernel::WorkingSetKernel* kernel) {
  require(length(K, 1) == q && (q < 2 || K.stride(1) == 1), "K must have contiguous rows of one value per row of G");
  require(length(K) >= (kernel ? std::min(q, PairRows<float>::kLeastRoom) : q), "K has room for too few rows");
  require(!kernel || kernel->size() == q, "kernel must be of the samples of G");
}

void check_store(const WritableKernelRows& K, const AnyMatrix& store, const Ids& slots, const Ids& columns, Index q) {
  require(store.dtype() == K.dtype(), "store must have the dtype of K");
  require(length(slots) == q && length(columns) == q, "slots and columns must have one value per row of G");
  require(all_within(slots.data(), q, -1, length(store)), "slots must be -1 or rows of store");
  require(all_within(columns.data(), q, 0, length(store, 1)), "columns must be columns of store");
}

void check_point(const Matrix& G, const Matrix& alpha, const ConstVector& diag, const ConstVector& low,
                 const ConstVector& high) {
  const Index q = length(G);
  require(length(G, 1) == 1 && length(alpha, 1) == 1, "G and alpha must have one column");
  require(length(alpha) == q && length(diag) == q && length(low) == q && length(high) == q,
          "alpha, diag, low and high must have one value per row of G");
  bool feasible = true;
  for (Index i = 0; i < q; ++i) feasible &= low.data()[i] <= alpha.data()[i] && alpha.data()[i] <= high.data()[i];
  require(feasible, "alpha must be between low and high");
}

Found pair_descent(const WritableKernelRows& K, const ConstVector& diag, const Matrix& G, const Matrix& alpha,
                   const ConstVector& low, const ConstVector& high, double eps, Index max_iter, Index most_work,
                   double seconds, const kernel::WorkingSetKernel* kernel, const std::optional<AnyMatrix>& store,
                   const std::optional<Ids>& slots, const std::optional<Ids>& columns) {
  nb::gil_scoped_release released;
  const Index q = length(G);
  check_point(G, alpha, diag, low, high);
  check_room(K, q, kernel);
  require(store.has_value() == slots.has_value() && store.has_value() == columns.has_value(),
          "store, slots and columns belong together");
  if (store) check_store(K, *store, *slots, *columns, q);
  require(eps >= 0.0 && max_iter >= 0, "eps and max_iter must not be negative");
  return with_dtype(K, "kernel rows must be float32 or float64", [&]<class T>(std::type_identity<T>) {
    PairSource<T> source{kernel};
    if (store)
      source = {kernel, static_cast<const T*>(store->data()), store->stride(0), slots->data(), columns->data()};
    PairRows<T> rows(static_cast<T*>(K.data()), K.stride(0), length(K), q, diag.data(), source);
    PairDescent<T> descent(q, rows, diag.data(), low.data(), high.data(), G.data(), alpha.data(), seconds);
    const PairResult result = descent.run(eps, max_iter, most_work);
    return Found{result.steps, result.violation, result.work};
  });
}

}  // namespace

void bind_pair_descent(nb::module_& m) {
  m.def("pair_descent", &pair_descent, "K"_a.noconvert(), "diag"_a.noconvert(), "G"_a.noconvert(),
        "alpha"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "eps"_a, "max_iter"_a,
        "most_work"_a = std::numeric_limits<Index>::max(), "seconds"_a = kInfinity, "kernel"_a.none() = nb::none(),
        "store"_a.noconvert().none() = nb::none(), "slots"_a.noconvert().none() = nb::none(),
        "columns"_a.noconvert().none() = nb::none(),
        "Solves a block of one column with bounds and a fixed sum in place, by second-order pairs. K has all kernel "
        "rows or, with kernel, is room for some: a missing row is copied from store[slots[k], columns] or, if slots[k] "
        "is -1, computed. Returns (steps, violation, work).");
}

}  // namespace multimargin::bind
