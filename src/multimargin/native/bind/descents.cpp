// Python bindings of the coordinate descents: shapes, dtypes and the GIL; no mathematics.
#include "solvers/descend.hpp"
#include "solvers/partial_rows.hpp"

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

// The same for a block whose kernel is computed in room, as far as it is needed.
Found descent_from_samples(const std::string& machine, const WorkingSetKernel& kernel, const ConstVector& diag,
                           const Matrix& G, const Matrix& alpha, const Labels& y, const ConstVector& C,
                           const DescentOptions& options,
                           const nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>& room) {
  nb::gil_scoped_release released;
  options.check();
  check_state(ConstMatrix(G), alpha, y, C);
  const Index q = length(G), m = length(G, 1);
  require(kernel.size() == q, "kernel must have one sample per row of G");
  require(length(diag) == q, "diag must have one value per row of G");
  require(length(room) >= q * q, "room must have place for the kernel block");
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) -> Found {
    if constexpr (!kListsVariables<Machine>) {
      throw std::invalid_argument("blocks without kernel values are for crammer-singer and weston-watkins only");
    } else {
      return with_stored_dtype(room, [&]<class T>(std::type_identity<T>) {
        Subproblem<T> block{q, m, nullptr, 0, diag.data(), G.data(), alpha.data(), y.data(), C.data()};
        block.kernel = &kernel;
        return found(descend<Machine>(block, options, static_cast<T*>(room.data()), length(room)));
      });
    }
  });
}

// The kept rows of all classes. The first use decides their precision.
struct KeptClasses {
  Index m, most_values;
  std::variant<std::monostate, std::vector<ClassRows<float>>, std::vector<ClassRows<double>>,
               std::vector<ClassRows<Fixed16>>>
      rows;

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
  return with_stored_rows(rows, [&]<class T>(const T* first, Index stride) {
    auto& classes = kept.of<T>();
    const Subproblem<T> block{q, m, nullptr, 0, diag.data(), G.data(), alpha.data(), y.data(), C.data()};
    OneVsRest machine(m, OneVsRest::find_update(options.update), options.seed, options.relax);
    ClassDescent<OneVsRest, T> descent(block, {first, stride, slots.data(), ids.data()}, n, machine, classes);
    if (q < n) descent.list(options.width);
    return found(descent.run(options, q == n));
  });
}

// The same for a block whose kernel is computed class by class.
Found class_descent_from_samples(const WorkingSetKernel& kernel, const ConstVector& diag, const Matrix& G,
                                 const Matrix& alpha, const Labels& y, const ConstVector& C,
                                 const DescentOptions& options, const std::string& dtype) {
  nb::gil_scoped_release released;
  const Index q = length(G), m = length(G, 1);
  options.check();
  check_shapes(ConstMatrix(G), alpha, y, C);
  require(all_within(y.data(), q, 0, m), "y must be columns of G");
  require(length(diag) == q, "diag must have one value per row of G");
  require(kernel.size() == q, "kernel must have one sample per row of G");
  const auto solve = [&]<class T>(std::type_identity<T>) {
    std::vector<ClassRows<T>> none;
    Subproblem<T> block{q, m, nullptr, 0, diag.data(), G.data(), alpha.data(), y.data(), C.data()};
    block.kernel = &kernel;
    OneVsRest machine(m, OneVsRest::find_update(options.update), options.seed, options.relax);
    ClassDescent<OneVsRest, T> descent(block, {}, q, machine, none);
    descent.list(options.width);
    return found(descent.run(options, false));
  };
  if (dtype == "uint16") return solve(std::type_identity<Fixed16>{});
  if (dtype == "float32") return solve(std::type_identity<float>{});
  require(dtype == "float64", "dtype must be uint16, float32 or float64");
  return solve(std::type_identity<double>{});
}

// Which samples of a shared block are here, and how the processes talk.
struct SharedArguments {
  static constexpr Index kLargestBatch = 1'000'000, kMostRanks = 1'000'000;

  Index batch, rank, ranks;
  nb::callable exchange;

  void check() const {
    require(1 <= batch && batch <= kLargestBatch, "batch must be between 1 and 1000000");
    require(ranks <= kMostRanks, "ranks must be at most 1000000");
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

// Where the kernel rows of a shared block are completed from.
struct RowSource {
  WritableKernelRows K;
  WritableIds known;
  KernelRows store;
  Ids slots, columns, places;
  ConstVector diag;

  Index rows() const { return length(K); }
  Index width() const { return length(K, 1); }
  bool is_fixed() const { return K.dtype() == nb::dtype<std::uint16_t>(); }

  void check() const {
    require(is_fixed() || K.dtype() == store.dtype(), "K must have the dtype of store, or uint16");
    require(width() < 2 || K.stride(1) == 1, "K must have contiguous rows");
    require(length(known) == rows() && length(slots) == rows(), "known and slots must have one value per row of K");
    require(length(columns) == width() && length(places) == width() && length(diag) == width(),
            "columns, places and diag must have one value per column of K");
    require(all_within(places.data(), width(), 0, rows()), "places must be rows of K");
    require(all_within(columns.data(), width(), 0, length(store, 1)), "columns must be columns of store");
    require(all_within(known.data(), rows(), 0, width() + 1), "known must be numbers of columns");
  }

  bool can_complete(Index i) const {
    return known.data()[i] == width() || (0 <= slots.data()[i] && slots.data()[i] < length(store));
  }

  // Calls work(first value of K, PartialRows) for the dtypes of K and store.
  template <class Work>
  auto visit(Work work) const {
    return with_stored_rows(store, [&]<class S>(const S* first, Index stride) {
      using Plain = std::conditional_t<std::is_same_v<S, Fixed16>, float, S>;
      const auto as = [&]<class T>(T* values) {
        return work(values, PartialRows<T, S>(values, K.stride(0), rows(), width(), known.data(), first, stride,
                                              slots.data(), columns.data(), places.data(), diag.data()));
      };
      return is_fixed() ? as(static_cast<Fixed16*>(K.data())) : as(static_cast<Plain*>(K.data()));
    });
  }

  void complete(const Ids& ids) const {
    nb::gil_scoped_release released;
    check();
    require(all_within(ids.data(), length(ids), 0, rows()), "ids must be rows of K");
    for (Index k = 0; k < length(ids); ++k)
      require(can_complete(ids.data()[k]), "slots must be rows of store for incomplete rows");
    visit([&](auto*, auto partial) {
      for (Index k = 0; k < length(ids); ++k) partial.complete(ids.data()[k]);
    });
  }
};

Found shared_descent(const std::string& machine, const RowSource& rows, const Matrix& G, const Matrix& alpha,
                     const Labels& y, const ConstVector& C, const DescentOptions& options,
                     const SharedArguments& others, const Room& room) {
  nb::gil_scoped_release released;
  options.check();
  others.check();
  rows.check();
  for (Index i = 0; i < rows.rows(); ++i)
    require(rows.can_complete(i), "slots must be rows of store for incomplete rows");
  check_state(ConstMatrix(G), alpha, y, C);
  const Index q = length(G), m = length(G, 1);
  require(rows.width() == q, "K must have a column per row of G");
  require(!room || room->dtype() == rows.K.dtype(), "room must have the dtype of K");
  return with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) -> Found {
    if constexpr (!kListsVariables<Machine>) {
      throw std::invalid_argument("a shared descent is for crammer-singer and weston-watkins only");
    } else {
      return rows.visit([&]<class T>(T* K, auto partial) {
        const SharedSamples shared{
            rows.rows(), rows.places.data(), others.batch, others.rank, others.ranks,
            [&partial](Index i) { partial.complete(i); },
            [&others](const double* mine, Index length, double* all) { others.send(mine, length, all); }};
        const Subproblem<T> block{q, m, K, rows.K.stride(0), rows.diag.data(), G.data(), alpha.data(),
                                  y.data(), C.data()};
        T* space = room ? static_cast<T*>(room->data()) : nullptr;
        return found(descend_together<Machine>(block, shared, options, space, room ? length(*room) : 0));
      });
    }
  });
}

}  // namespace

void bind_descents(nb::module_& m) {
  nb::class_<DescentOptions>(m, "DescentOptions", "How a coordinate descent runs.")
      .def(nb::init<double, Index, Index, std::string, std::uint64_t, bool, double, double, bool, bool, bool, bool,
                    int, double>(),
           nb::kw_only(), "eps"_a, "max_sweeps"_a, "most_work"_a = std::numeric_limits<Index>::max(),
           "update"_a = "sort", "seed"_a = 0, "staged"_a = true, "relax"_a = 1.0, "width"_a = kInfinity,
           "faces"_a = false, "spans"_a = false, "partners"_a = false, "whole"_a = false, "n_threads"_a = 1,
           "seconds"_a = kInfinity,
           "Reach a violation of eps in at most max_sweeps sweeps, most_work multiply-adds and seconds. update and "
           "seed are of the one-sample solve; width says by how much G may change, and so which variables take part.");
  m.def("coordinate_descent", &coordinate_descent, "machine"_a, "K"_a.noconvert(), "diag"_a.noconvert(),
        "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "options"_a,
        "room"_a.noconvert().none() = nb::none(),
        "Solves the block in place by the coordinate descent that fits the machine; room is memory for kernel rows of "
        "single classes. Returns (sweeps, updates, violation, work).");
  m.def("descent_from_samples", &descent_from_samples, "machine"_a, "kernel"_a, "diag"_a.noconvert(),
        "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "options"_a,
        "room"_a.noconvert(),
        "The same for a block without kernel values: those between the samples of each class are computed in room.");
  nb::class_<KeptClasses>(m, "KeptClasses", "Kernel rows between the samples of each class, kept for class_descent.")
      .def("__init__", &make_kept_classes, "m"_a, "most_values"_a);
  m.def("class_descent", &class_descent, "kept"_a, "rows"_a.noconvert(), "slots"_a.noconvert(), "ids"_a.noconvert(),
        "diag"_a.noconvert(), "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "options"_a,
        "Solves a block of one-vs-rest in place, class by class, with K_ij = rows[slots[i], ids[j]]; samples of slot "
        "-1 do not move. If ids are all columns of rows, all variables take part and all of G is updated. Else those "
        "take part that a change of G by options.width could move. Returns (sweeps, updates, violation, work).");
  m.def("class_descent_from_samples", &class_descent_from_samples, "kernel"_a, "diag"_a.noconvert(),
        "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "options"_a, "dtype"_a,
        "The same for a block without kernel values: those between the samples of a class are computed, in this "
        "dtype, when its turn comes.");
  nb::class_<SharedArguments>(m, "SharedArguments", "How the processes of a shared descent talk.")
      .def(nb::init<Index, Index, Index, nb::callable>(), nb::kw_only(), "batch"_a, "rank"_a, "ranks"_a, "exchange"_a,
           "Each process solves batch samples in an iteration; exchange(mine) returns the numbers of all processes.");
  nb::class_<RowSource>(m, "RowSource", "Kernel rows of a shared block, and where they are completed from.")
      .def(nb::init<WritableKernelRows, WritableIds, KernelRows, Ids, Ids, Ids, ConstVector>(), nb::kw_only(),
           "K"_a.noconvert(), "known"_a.noconvert(), "store"_a.noconvert(), "slots"_a.noconvert(),
           "columns"_a.noconvert(), "places"_a.noconvert(), "diag"_a.noconvert(),
           "K has a row per sample of the block, and a column per sample that this process has of it: places[j] is its "
           "row, and diag[j] its diagonal entry. The first known[i] values of row i are there; the others are "
           "store[slots[i], columns[j]].")
      .def("complete", &RowSource::complete, "ids"_a.noconvert(), "Completes these rows of K.");
  m.def("shared_descent", &shared_descent, "machine"_a, "rows"_a, "G"_a.noconvert(), "alpha"_a.noconvert(),
        "y"_a.noconvert(), "C"_a.noconvert(), "options"_a, "others"_a, "room"_a.noconvert().none() = nb::none(),
        "Solves a block in place together with other processes. G has the samples of this one. Returns (sweeps, "
        "updates, violation, work), alike in all processes.");
}

}  // namespace multimargin::bind
