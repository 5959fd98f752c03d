// Python bindings of the state of all samples: measures, gradient, one-sample updates. No mathematics.
#include "machines/machines.hpp"
#include "state/gradient.hpp"
#include "state/measure.hpp"
#include "state/pairs.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"

namespace multimargin::bind {
namespace {

using namespace machines;

// Whether the labels of the rows ids, or of all rows, are in 0..m-1.
bool labels_are_valid(const Labels& y, Index m, const std::optional<Ids>& ids) {
  if (!ids) return all_within(y.data(), length(y), 0, m);
  bool valid = true;
  for (Index k = 0; k < length(*ids); ++k) valid &= all_within(y.data() + ids->data()[k], 1, 0, m);
  return valid;
}

void measure(const std::string& machine, const ConstMatrix& G, const ConstMatrix& alpha, const Labels& y,
             const ConstVector& C, const std::optional<Ids>& ids, const Vector& psi, const Vector& gain,
             int n_threads) {
  nb::gil_scoped_release released;
  check_shapes(G, alpha, y, C);
  const bool binary = machine == CSvc::kName;
  require(binary ? length(G, 1) == 1 : length(G, 1) >= 2, "G needs one column per class, or one for c-svc");
  require(length(psi) == length(G) && length(gain) == length(G), "psi and gain must have one value per row of G");
  if (ids) check_ids(*ids, length(G), "ids must be rows of G");
  require(labels_are_valid(y, binary ? 2 : length(G, 1), ids), "y must be in 0..m-1");
  const state::MeasureArrays arrays{length(G, 1), G.data(), alpha.data(), y.data(), C.data(), psi.data(), gain.data()};
  const int threads = checked_threads(n_threads);
  with_measured_machine(machine, [&](auto chosen) {
    using Machine = typename decltype(chosen)::type;
    state::measure<Machine>(arrays, ids ? ids->data() : nullptr, ids ? length(*ids) : length(G), threads);
  });
}

void slack(const std::string& machine, const ConstMatrix& G, const Labels& y, const Ids& ids, const Vector& slack,
           int n_threads) {
  nb::gil_scoped_release released;
  const Index n = length(G), m = length(G, 1);
  require(m >= 2, "G needs at least two classes (columns)");
  require(length(y) == n && length(slack) == n, "y and slack must have one value per row of G");
  check_ids(ids, n, "ids must be rows of G");
  require(labels_are_valid(y, m, ids), "y must be in 0..m-1");
  const int threads = checked_threads(n_threads);
  with_machine(machine, [&]<class Machine>(std::type_identity<Machine>) {
    state::slack<Machine>(G.data(), y.data(), m, ids.data(), length(ids), slack.data(), threads);
  });
}

void rows_not_zero(const ConstMatrix& A, const Array<bool, 1>& found) {
  nb::gil_scoped_release released;
  require(length(found) == length(A), "found must have one value per row of A");
  state::find_rows(A.data(), length(A), length(A, 1), found.data());
}

using Mask = Array<bool, 2>;
using Samples = Array<const bool, 1>;

using Flags = Array<bool, 1>;

// The arrays of pairs (sample, class), all of one shape; and of samples.
struct PairTable {
  Matrix slack, due_at;
  Mask due;
  Flags has_due, has_moved;

  state::Pairs pairs() const {
    return {length(due), length(due, 1), slack.data(), due_at.data(), due.data(), has_due.data()};
  }

  template <class A>
  void check(const A& other, const char* message) const {
    require(length(other) == length(due) && length(other, 1) == length(due, 1), message);
  }
};

void make_pair_table(PairTable* self, const Matrix& slack, const Matrix& due_at, const Mask& due, const Flags& has_due,
                     const Flags& has_moved) {
  new (self) PairTable{slack, due_at, due, has_due, has_moved};
  self->check(slack, "slack must have the shape of due");
  self->check(due_at, "due_at must have the shape of due");
  require(length(has_due) == length(due) && length(has_moved) == length(due),
          "has_due and has_moved must have one value per row of due");
}

std::tuple<Index, Index, double> find_due(const PairTable& table, const ConstMatrix& alpha, const ConstMatrix& start,
                                          const std::optional<Samples>& takes_part, double drift, double worst) {
  nb::gil_scoped_release released;
  table.check(alpha, "alpha must have the shape of the table");
  table.check(start, "start must have the shape of the table");
  require(!takes_part || length(*takes_part) == length(alpha), "takes_part must have one value per row of alpha");
  const state::Change change{alpha.data(), start.data(), table.has_moved.data()};
  const auto counts = state::find_due(table.pairs(), change, takes_part ? takes_part->data() : nullptr, drift, worst);
  return {counts.moved, counts.rows, counts.values};
}

double measure_due(const PairTable& table, const ConstMatrix& G, const Labels& y, const Samples& solved, double drift,
                   double rest) {
  nb::gil_scoped_release released;
  table.check(G, "G must have the shape of the table");
  require(length(y) == length(G) && length(solved) == length(G), "y and solved must have one value per row of G");
  require(0.0 <= rest && rest < 1.0, "rest must be at least 0 and less than 1");
  return state::measure_due(table.pairs(), G.data(), y.data(), solved.data(), drift, rest);
}

void update_gradient(const Matrix& G, const KernelRows& rows, const Ids& slots, const ConstMatrix& delta,
                     int n_threads) {
  nb::gil_scoped_release released;
  require(rows.shape(1) == G.shape(0), "rows must have one column per row of G");
  require(delta.shape(0) == slots.shape(0) && delta.shape(1) == G.shape(1),
          "delta must have one row per slot and the columns of G");
  check_ids(slots, length(rows), "slots must be rows of rows");
  const int threads = checked_threads(n_threads);
  with_stored_rows(rows, [&](const auto* first, Index stride) {
    state::update_gradient(first, stride, slots.data(), delta.data(), length(delta), length(G), length(G, 1), G.data(),
                           threads);
  });
}

void update_samples(const std::string& machine, const std::string& update, const Matrix& alpha, const ConstMatrix& G,
                    const Labels& y, const ConstVector& C, const ConstVector& kii, std::uint64_t seed) {
  nb::gil_scoped_release released;
  check_state(G, alpha, y, C);
  require(length(kii) == length(G), "kii must have one value per row of G");
  const Index m = length(G, 1);
  with_machine(machine, [&](auto chosen) {
    using Machine = typename decltype(chosen)::type;
    Machine one(m, Machine::find_update(update), seed);
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

void bind_state(nb::module_& m) {
  m.attr("SUMMED_ROWS") = SparseCoefficients::kMostSummed;
  m.def("measure", &measure, "machine"_a, "G"_a.noconvert(), "alpha"_a.noconvert(), "y"_a.noconvert(),
        "C"_a.noconvert(), "ids"_a.noconvert().none(), "psi"_a.noconvert(), "gain"_a.noconvert(), "n_threads"_a,
        "Writes violation psi_i and gain g_i of the rows ids (None: all) to psi and gain.");
  m.def("slack", &slack, "machine"_a, "G"_a.noconvert(), "y"_a.noconvert(), "ids"_a.noconvert(), "slack"_a.noconvert(),
        "n_threads"_a,
        "slack[i] of the rows ids: how far they are from a violation if alpha_i = 0, or minus the violation.");
  m.def("rows_not_zero", &rows_not_zero, "A"_a.noconvert(), "found"_a.noconvert(),
        "found[i]: whether row i of A has a value that is not zero.");
  nb::class_<PairTable>(m, "PairTable", "Pairs (sample, class): their slack, and which must be computed again.")
      .def("__init__", &make_pair_table, "slack"_a.noconvert(), "due_at"_a.noconvert(), "due"_a.noconvert(),
           "has_due"_a.noconvert(), "has_moved"_a.noconvert())
      .def("find_due", &find_due, "alpha"_a.noconvert(), "start"_a.noconvert(), "takes_part"_a.noconvert().none(),
           "drift"_a, "worst"_a,
           "Marks the pairs with weight, with a slack of at most worst, or with due_at < drift, of the samples that "
           "take part; if takes_part is None, leaves the marks as they are. Says which samples have alpha != start, "
           "and which have a marked pair. Returns the numbers of both, and the kernel values between them, class by "
           "class.")
      .def("measure", &measure_due, "G"_a.noconvert(), "y"_a.noconvert(), "solved"_a.noconvert(), "drift"_a, "rest"_a,
           "Takes over the slack of the marked pairs from G. Returns drift plus the change that all but the share rest "
           "of them stayed below, those of solved samples aside; due_at becomes slack plus that.");
  m.def("update_gradient", &update_gradient, "G"_a.noconvert(), "rows"_a.noconvert(), "slots"_a.noconvert(),
        "delta"_a.noconvert(), "n_threads"_a, "G[j, :] += sum_k rows[slots[k], j] delta[k, :].");
  m.def("update_samples", &update_samples, "machine"_a, "update"_a, "alpha"_a.noconvert(), "G"_a.noconvert(),
        "y"_a.noconvert(), "C"_a.noconvert(), "kii"_a.noconvert(), "seed"_a,
        "Applies one single-sample update to every row of alpha, in place; G is only read.");
}

}  // namespace multimargin::bind
