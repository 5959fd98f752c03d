// Python bindings of the coordinate descents: shapes, dtypes and the GIL; no mathematics.
#include "solvers/descend.hpp"
#include "solvers/shared_descent.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <variant>

#include "bind/arrays.hpp"
#include "machines/machines.hpp"

namespace multimargin::bind {
namespace {

using namespace machines;
using namespace solvers;

using Found = std::tuple<Index, Index, double, Index>;

using Room = std::optional<nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

Found found(const DescentResult& result) { return {result.sweeps, result.updates, result.violation, result.work}; }

Found coordinate_descent(const std::string& machine, const KernelRows& K, const ConstVector& diag, const Matrix& G,
                         const Matrix& alpha, const Labels& y, const ConstVector& C, const DescentOptions& options,
                         const Room& room) {
  nb::gil_scoped_release released;
  options.check();
  check_state(ConstMatrix(G), alpha, y, C);
  const Index q = length(G), m = length(G, 1);
  require(length(K) == q && length(K, 1) == q, "K must be square, with one row per row of G");
  require(length(diag) == q, "diag must have one value per row of G");
  require(!room || room->dtype() == K.dtype(), "room must have the dtype of K");
  require(q < 2 || K.stride(1) == 1, "K must have contiguous rows");
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) {
    return with_stored_dtype(K, [&]<class T>(std::type_identity<T>) {
      const T* first = static_cast<const T*>(K.data());
      const Subproblem<T> block{q, m, first, K.stride(0), diag.data(), G.data(), alpha.data(), y.data(), C.data()};
      T* space = room ? static_cast<T*>(room->data()) : nullptr;
      return found(descend<Machine>(block, options, space, room ? length(*room) : 0));
    });
  });
}

// The kept rows of all classes. The first use decides their precision.
struct KeptClasses {
  Index m, most_values;
  std::variant<std::monostate, std::vector<ClassRows<float>>, std::vector<ClassRows<double>>> rows;

  template <class T>
  std::vector<ClassRows<T>>& of() {
    using Rows = std::vector<ClassRows<T>>;
    if (std::holds_alternative<std::monostate>(rows))
      rows = Rows(m, ClassRows<T>(most_values / m));
    require(std::holds_alternative<Rows>(rows), "rows must have the dtype that they had before");
    return std::get<Rows>(rows);
  }
};

void make_kept_classes(KeptClasses* self, Index m, Index most_values) {
  require(m >= 1 && most_values >= 0, "m must be at least 1 and most_values at least 0");
  new (self) KeptClasses{m, most_values, {}};
}

void check_source(const KernelRows& rows, const Ids& slots, const Ids& ids, Index q) {
  const Index n = length(rows, 1);
  require(length(slots) == q && length(ids) == q, "slots and ids must have one value per row of G");
  require(all_within(slots.data(), q, -1, length(rows)), "slots must be -1 or rows of rows");
  bool valid = all_within(ids.data(), q, 0, n);
  std::vector<char> seen(n, 0);
  for (Index i = 0; i < q && valid; ++i) valid = !std::exchange(seen[ids.data()[i]], 1);
  require(valid, "ids must be columns of rows, each once");
}

Found class_descent(KeptClasses& kept, const KernelRows& rows, const Ids& slots, const Ids& ids,
                    const ConstVector& diag, const Matrix& G, const Matrix& alpha, const Labels& y,
                    const ConstVector& C, const DescentOptions& options) {
  nb::gil_scoped_release released;
  const Index q = length(G), m = length(G, 1), n = length(rows, 1);
  options.check();
  check_shapes(ConstMatrix(G), alpha, y, C);
  require(all_within(y.data(), q, 0, m), "y must be columns of G");
  require(length(diag) == q, "diag must have one value per row of G");
  check_source(rows, slots, ids, q);
  require(kept.m == m, "kept must be of as many classes as G");
  return with_rows(rows, [&]<class T>(const T* first, Index stride) {
    auto& classes = kept.of<T>();
    const Subproblem<T> block{q, m, nullptr, 0, diag.data(), G.data(), alpha.data(), y.data(), C.data()};
    OneVsRest machine(m, OneVsRest::find_update(options.update), options.seed, options.relax);
    ClassDescent<OneVsRest, T> descent(block, {first, stride, slots.data(), ids.data()}, n, machine, classes);
    if (q < n) descent.list(options.width);
    return found(descent.run(options, q == n));
  });
}

// Which samples of a shared block are here, and how the processes talk.
struct SharedArguments {
  Index batch, rank, ranks;
  nb::callable exchange;

  void check() const {
    require(batch >= 1, "batch must be at least 1");
    require(0 <= rank && rank < ranks, "rank must be one of 0..ranks-1");
  }

  // Numbers of this process to those of all, through Python.
  void send(const double* mine, Index length, double* all) const {
    nb::gil_scoped_acquire acquired;
    const auto size = static_cast<std::size_t>(length);
    const nb::ndarray<nb::numpy, const double, nb::ndim<1>> sent(mine, 1, &size, nb::handle());
    const auto received = nb::cast<ConstVector>(exchange(sent));
    require(bind::length(received) == ranks * length, "exchange must return as many numbers of every process");
    std::copy_n(received.data(), ranks * length, all);
  }
};

Found shared_descent(const std::string& machine, const KernelRows& K, const Ids& places, const ConstVector& diag,
                     const Matrix& G, const Matrix& alpha, const Labels& y, const ConstVector& C,
                     const DescentOptions& options, const SharedArguments& others, const Room& room) {
  nb::gil_scoped_release released;
  options.check();
  others.check();
  check_state(ConstMatrix(G), alpha, y, C);
  const Index q = length(G), m = length(G, 1), rows = length(K);
  require(length(K, 1) == q && (q < 2 || K.stride(1) == 1), "K must have contiguous rows, with a column per row of G");
  require(length(diag) == q && length(places) == q, "diag and places must have one value per row of G");
  require(all_within(places.data(), q, 0, rows), "places must be rows of K");
  require(!room || room->dtype() == K.dtype(), "room must have the dtype of K");
  const SharedSamples shared{rows, places.data(), others.batch, others.rank, others.ranks,
                             [&others](const double* mine, Index count, double* all) { others.send(mine, count, all); }};
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) -> Found {
    if constexpr (kListsVariables<Machine>) {
      return with_stored_dtype(K, [&]<class T>(std::type_identity<T>) {
        const T* first = static_cast<const T*>(K.data());
        const Subproblem<T> block{q, m, first, K.stride(0), diag.data(), G.data(), alpha.data(), y.data(), C.data()};
        T* space = room ? static_cast<T*>(room->data()) : nullptr;
        ListedVariables<Machine, T> variables(block, rows, options.width, space, room ? length(*room) : 0);
        Machine formulas(m, Machine::find_update(options.update), options.seed + 1, options.relax);
        return found(SharedDescent(block, shared, std::move(formulas), std::move(variables), options).run());
      });
    } else {
      throw std::invalid_argument("a shared descent is for crammer-singer and weston-watkins only");
    }
  });
}

}  // namespace

void bind_descents(nb::module_& m) {
  nb::class_<DescentOptions>(m, "DescentOptions", "How a coordinate descent runs.")
      .def(nb::init<double, Index, Index, std::string, std::uint64_t, bool, double, double, bool, int, double>(),
           nb::kw_only(), "eps"_a, "max_sweeps"_a, "most_work"_a = std::numeric_limits<Index>::max(),
           "update"_a = "sort", "seed"_a = 0, "staged"_a = true, "relax"_a = 1.0, "width"_a = kInfinity,
           "faces"_a = false, "n_threads"_a = 1, "seconds"_a = kInfinity,
           "Reach a violation of eps in at most max_sweeps sweeps, most_work multiply-adds and seconds. update and "
           "seed are of the one-sample solve; width says by how much G may change, and so which variables take part.");
  m.def("coordinate_descent", &coordinate_descent, "machine"_a, "K"_a.noconvert(), "diag"_a.noconvert(),
        "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "options"_a,
        "room"_a.noconvert().none() = nb::none(),
        "Solves the block in place by the coordinate descent that fits the machine; room is memory for kernel rows of "
        "single classes. Returns (sweeps, updates, violation, work).");
  nb::class_<KeptClasses>(m, "KeptClasses", "Kernel rows between the samples of each class, kept for class_descent.")
      .def("__init__", &make_kept_classes, "m"_a, "most_values"_a);
  m.def("class_descent", &class_descent, "kept"_a, "rows"_a.noconvert(), "slots"_a.noconvert(), "ids"_a.noconvert(),
        "diag"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "options"_a,
        "Solves a block of one-vs-rest in place, class by class, with K_ij = rows[slots[i], ids[j]]; samples of slot "
        "-1 do not move. If ids are all columns of rows, all variables take part and all of G is updated. Else those "
        "take part that a change of G by options.width could move. Returns (sweeps, updates, violation, work).");
  nb::class_<SharedArguments>(m, "SharedArguments", "How the processes of a shared descent talk.")
      .def(nb::init<Index, Index, Index, nb::callable>(), nb::kw_only(), "batch"_a, "rank"_a, "ranks"_a, "exchange"_a,
           "Each process solves batch samples in an iteration; exchange(mine) returns the numbers of all processes.");
  m.def("shared_descent", &shared_descent, "machine"_a, "K"_a.noconvert(), "places"_a.noconvert(),
        "diag"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "options"_a, "others"_a, "room"_a.noconvert().none() = nb::none(),
        "Solves a block in place together with other processes. K has a row per sample of the block, and a column per "
        "row of G: sample places[j] of the block, which this process has. Returns (sweeps, updates, violation, work), "
        "alike in all processes.");
}

}  // namespace multimargin::bind
