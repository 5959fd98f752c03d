// Python bindings of descent class by class: shapes, dtypes and the GIL; no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/kernel_rows.hpp"
#include "machines/one_vs_rest.hpp"
#include "solvers/class_descent.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace machines;
using namespace solvers;
namespace {

using State = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = ConstVectorOf<double>;
using Labels = ConstVectorOf<std::int32_t>;
using Ids = ConstVectorOf<Index>;

// The kept rows of all classes, of either precision once they are used.
struct KeptClasses {
  Index m, most_values;
  std::variant<std::monostate, std::vector<ClassRows<float>>, std::vector<ClassRows<double>>> rows;

  template <class T>
  std::vector<ClassRows<T>>& of() {
    using Rows = std::vector<ClassRows<T>>;
    if (std::holds_alternative<std::monostate>(rows))
      rows = Rows(static_cast<std::size_t>(m), ClassRows<T>(most_values / m));
    require(std::holds_alternative<Rows>(rows), "rows must have the dtype that they had before");
    return std::get<Rows>(rows);
  }
};

void make_kept_classes(KeptClasses* self, Index m, Index most_values) {
  require(m >= 1 && most_values >= 0, "m must be at least 1 and most_values at least 0");
  new (self) KeptClasses{m, most_values, {}};
}

void check_samples(const KernelRows& rows, const Ids& slots, const Ids& ids, const State& G) {
  const Index q = length(G), n = length(rows, 1);
  require(length(slots) == q && length(ids) == q, "slots and ids must have one value a row of G");
  std::vector<char> seen(static_cast<std::size_t>(n), 0);
  for (Index i = 0; i < q; ++i) {
    const Index slot = slots.data()[i], id = ids.data()[i];
    require(-1 <= slot && slot < length(rows), "slots must be -1 or rows of rows");
    require(0 <= id && id < n && !seen[static_cast<std::size_t>(id)], "ids must be columns of rows, each once");
    seen[static_cast<std::size_t>(id)] = 1;
  }
}

void check_state(const State& G, const State& alpha, const Labels& y, const Vector& C, const Vector& diag) {
  const Index q = length(G), m = length(G, 1);
  require(length(alpha) == q && length(alpha, 1) == m, "alpha must have the shape of G");
  require(length(y) == q && length(C) == q && length(diag) == q, "y, C and diag must have one value a row of G");
  for (Index i = 0; i < q; ++i) require(0 <= y.data()[i] && y.data()[i] < m, "y must be columns of G");
}

std::tuple<Index, Index, double, Index> bind_class_descent(KeptClasses& kept, const KernelRows& rows, const Ids& slots,
                                                           const Ids& ids, const Vector& diag, const State& G,
                                                           const State& alpha, const Labels& y, const Vector& C,
                                                           double eps, Index max_sweeps, bool staged, double relax,
                                                           double width, bool faces, Index most_work, int n_threads) {
  check_state(G, alpha, y, C, diag);
  check_samples(rows, slots, ids, G);
  require(kept.m == length(G, 1), "kept must be of as many classes as G");
  require(eps >= 0.0 && width >= 0.0, "eps and width must not be negative");
  require(0.0 < relax && relax < 2.0, "relax must be between 0 and 2");
  const int threads = checked_threads(n_threads);
  return with_rows(rows, [&](const auto* first, Index stride) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(first)>>;
    auto& classes = kept.of<T>();
    nb::gil_scoped_release released;
    const Index q = length(G), m = length(G, 1), n = length(rows, 1);
    const Subproblem<T> block{q, m, nullptr, 0, G.data(), alpha.data(), y.data(), C.data()};
    ClassDescent<OneVsRest, T> descent(block, {first, stride, slots.data(), ids.data()}, n, diag.data(),
                                       OneVsRest(m, BoxUpdate::exact, 0, relax), classes);
    const bool complete = q == n;
    if (!complete) descent.list(width);
    const auto result = descent.run({eps, max_sweeps, most_work, staged, faces}, complete, threads);
    return std::tuple(result.sweeps, result.updates, result.violation, result.work);
  });
}

}  // namespace

void bind_classes(nb::module_& m) {
  nb::class_<KeptClasses>(m, "KeptClasses", "Kernel rows between the samples of each class, kept for class_descent.")
      .def("__init__", &make_kept_classes, "m"_a, "most_values"_a);
  m.def("class_descent", &bind_class_descent, "kept"_a, "rows"_a.noconvert(), "slots"_a.noconvert(),
        "ids"_a.noconvert(), "diag"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(),
        "C"_a.noconvert(), "eps"_a, "max_sweeps"_a, "staged"_a, "relax"_a, "width"_a, "faces"_a,
        "most_work"_a = std::numeric_limits<Index>::max(), "n_threads"_a = 1,
        "Solves a block of one-vs-rest in place, class by class, with K_ij = rows[slots[i], ids[j]]; samples of slot -1 "
        "do not move. Where ids are all columns of rows, all pairs take part and G is complete, else those that a change "
        "of G by width could move. Returns (sweeps, updates, violation, work).");
}

}  // namespace multimargin::bind
