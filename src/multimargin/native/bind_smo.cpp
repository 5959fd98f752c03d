// Python bindings of descent by pairs: shapes, dtypes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>

#include "bind_arrays.hpp"
#include "smo.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin {
namespace {

using State = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Kernel = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Room = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::tuple<Index, double, Index> descend(const Kernel& K, const ConstVectorOf<double>& diag, const State& G,
                                         const State& alpha, const ConstVectorOf<double>& low,
                                         const ConstVectorOf<double>& high, double eps, Index max_iter, double width,
                                         const std::optional<Room>& room, Index most_work) {
  const Index q = length(G);
  const Block<T> block{q, 1, static_cast<const T*>(K.data()), K.stride(0), G.data(), alpha.data(), nullptr, nullptr};
  T* space = room ? static_cast<T*>(room->data()) : nullptr;
  nb::gil_scoped_release released;
  PairDescent<T> descent(block, diag.data(), low.data(), high.data(),
                         samples_near_margin(alpha.data(), G.data(), low.data(), high.data(), q, width), space,
                         room ? length(*room) : 0);
  const DescentResult result = descent.run(eps, max_iter, most_work);
  return {result.updates, result.violation, result.work};
}

std::tuple<Index, double, Index> bind_pair_descent(const Kernel& K, const ConstVectorOf<double>& diag, const State& G,
                                                   const State& alpha, const ConstVectorOf<double>& low,
                                                   const ConstVectorOf<double>& high, double eps, Index max_iter,
                                                   double width, const std::optional<Room>& room, Index most_work) {
  const Index q = length(G);
  require(length(G, 1) == 1 && length(alpha, 1) == 1, "G and alpha must have one column");
  require(length(alpha) == q && length(diag) == q && length(low) == q && length(high) == q,
          "alpha, diag, low and high must have one value a row of G");
  require(length(K) == q && length(K, 1) == q, "K must be square, with one row a row of G");
  require(q < 2 || K.stride(1) == 1, "kernel rows must be contiguous along the last axis");
  require(!room || room->dtype() == K.dtype(), "room must have the dtype of K");
  require(eps >= 0.0 && width >= 0.0, "eps and width must not be negative");
  require(max_iter >= 0, "max_iter must not be negative");
  bool feasible = true;
  for (Index i = 0; i < q; ++i)
    feasible &= low.data()[i] <= alpha.data()[i] && alpha.data()[i] <= high.data()[i];
  require(feasible, "alpha must be between low and high");
  if (K.dtype() == nb::dtype<float>())
    return descend<float>(K, diag, G, alpha, low, high, eps, max_iter, width, room, most_work);
  if (K.dtype() == nb::dtype<double>())
    return descend<double>(K, diag, G, alpha, low, high, eps, max_iter, width, room, most_work);
  throw nb::type_error("kernel rows must be float32 or float64");
}

}  // namespace

void bind_smo(nb::module_& m) {
  m.def("pair_descent", &bind_pair_descent, "K"_a.noconvert(), "diag"_a.noconvert(), "G"_a.noconvert(),
        "alpha"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "eps"_a, "max_iter"_a,
        "width"_a = kInfinity, "room"_a.noconvert().none() = nb::none(),
        "most_work"_a = std::numeric_limits<Index>::max(),
        "Solves a block of one column with bounds and a fixed sum in place, by second-order pairs over the samples "
        "within width of the margin. Returns (steps, violation, work).");
}

}  // namespace multimargin
