// Python bindings of the linear machine: shapes, dtypes, lifetimes and the GIL; no mathematics.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"
#include "linear/pass_runner.hpp"
#include "linear/problem.hpp"
#include "linear/proximal_point.hpp"

namespace multimargin::bind {
namespace {

using namespace linear;

using Weights = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // float32 or float64

constexpr const char* kWeightTypes = "weights must be float32 or float64";

// Calls use(view of the weights) for their dtype.
template <class Use>
auto with_weights(const LinearProblem& problem, const Weights& weights, Use use) {
  const Index features = problem.rows().features(), width = length(weights, 1);
  const Index blocks = features > 0 ? length(weights) / features : 1;
  require(length(weights) == blocks * features && width % kClassLanes == 0 && width * blocks >= problem.m(),
          "weights must have one row per feature, or some blocks of that, and all classes in rows of a multiple of 8");
  return with_dtype(weights, kWeightTypes, [&]<class W>(std::type_identity<W>) {
    return use(LinearWeights<W>{static_cast<W*>(weights.data()), features, width, blocks});
  });
}

void make_problem(LinearProblem* self, const std::string& machine, std::unique_ptr<LinearRows> rows, const Labels& y,
                  const ConstVector& C, Index m, int n_threads, int parts) {
  const Index n = rows->rows();
  checked_threads(n_threads);
  checked_threads(parts);
  require(2 <= m && m <= std::numeric_limits<std::int32_t>::max(), "m must be at least 2, and at most 2^31 - 1");
  require(length(y) == n && length(C) == n, "y and C must have one value per row");
  require(all_within(y.data(), n, 0, m), "labels must be in 0..m-1");
  bool valid = true;
  for (Index i = 0; i < n; ++i) valid &= C.data()[i] > 0.0 && C.data()[i] <= std::numeric_limits<double>::max();
  require(valid, "costs must be positive and finite");
  new (self) LinearProblem(machine, std::move(rows), m, y.data(), C.data(), n_threads, parts);
}

void dense_problem(LinearProblem* self, const std::string& machine, const AnyMatrix& X, const Labels& y,
                   const ConstVector& C, Index m, double constant, int n_threads, int parts) {
  nb::gil_scoped_release released;
  auto rows = with_dtype(X, "X must be float32 or float64", [&]<class T>(std::type_identity<T>) {
    const T* values = static_cast<const T*>(X.data());
    return std::unique_ptr<LinearRows>(new DenseLinearRows<T>(values, length(X), length(X, 1), constant));
  });
  make_problem(self, machine, std::move(rows), y, C, m, n_threads, parts);
}

template <class I>
void sparse_problem(LinearProblem* self, const std::string& machine, const AnyVector& data,
                    const ConstVectorOf<I>& indices, const ConstVectorOf<I>& indptr, Index d, const Labels& y,
                    const ConstVector& C, Index m, double constant, int n_threads, int parts) {
  nb::gil_scoped_release released;
  require(length(indices) == length(data), "indices and data must have the same length");
  const Index n = length(indptr) - 1;
  const I* starts = indptr.data();
  require(0 <= d && d <= kMostNamed, "d must be in 0..2^53");
  require(n >= 0 && starts[0] >= 0 && static_cast<Index>(starts[n]) <= length(data), "indptr must stay within data");
  require(std::is_sorted(starts, starts + n + 1), "indptr must not decrease");
  require(all_within(indices.data() + starts[0], starts[n] - starts[0], 0, d), "column indices must be in 0..d-1");
  auto rows = with_dtype(data, "data must be float32 or float64", [&]<class T>(std::type_identity<T>) {
    const T* values = static_cast<const T*>(data.data());
    return std::unique_ptr<LinearRows>(new SparseLinearRows<T, I>(values, indices.data(), starts, n, d, constant));
  });
  make_problem(self, machine, std::move(rows), y, C, m, n_threads, parts);
}

auto measure(LinearProblem& problem, const Weights& weights, Index step) {
  nb::gil_scoped_release released;
  require(step >= 1, "step must be at least 1");
  return with_weights(problem, weights, [&](const auto& w) {
    const LinearMeasure found = problem.measure(w, step);
    return std::tuple(found.violation, found.gain, found.gap, found.loss);
  });
}

void rebuild(const LinearProblem& problem, const Weights& weights) {
  nb::gil_scoped_release released;
  with_weights(problem, weights, [&](const auto& w) {
    problem.rebuild(w);
  });
}

double norm(const AnyMatrix& weights, int n_threads) {
  nb::gil_scoped_release released;
  checked_threads(n_threads);
  return with_dtype(weights, kWeightTypes, [&]<class W>(std::type_identity<W>) {
    return squared_norm(static_cast<const W*>(weights.data()), length(weights) * length(weights, 1), n_threads);
  });
}

// The values as an array that owns them.
template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T> values) {
  auto* own = new std::vector<T>(std::move(values));
  nb::capsule owner(own, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(own->data(), {own->size()}, owner);
}

// alpha as CSR: (indptr, classes, values), the label's entry of a row first.
nb::tuple dual_arrays(const LinearProblem& problem) {
  const SparseDual& dual = problem.dual();
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> classes;
  std::vector<double> values;
  {
    nb::gil_scoped_release released;
    indptr.reserve(dual.size() + 1);
    for (Index i = 0; i < dual.size(); ++i) {
      if (dual.own(i) != 0.0) classes.push_back(problem.y()[i]), values.push_back(dual.own(i));
      for (Index e = 0; e < dual.count(i); ++e) {
        classes.push_back(dual.entries(i)[e].r);
        values.push_back(dual.entries(i)[e].alpha);
      }
      indptr.push_back(std::ssize(classes));
    }
  }
  return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(classes)), to_numpy(std::move(values)));
}

// Sets a row of the dual. Rounding may have made its values a little infeasible.
template <class Form>
void set_row(LinearProblem& problem, Index i, double given, std::vector<SparseDual::Entry>& entries) {
  constexpr double kRounding = 1e-9;
  const double C = problem.task().C[i], most = Form::most_other(C);
  double others = 0.0;
  bool feasible = true;
  for (SparseDual::Entry& entry : entries) {
    feasible = feasible && -entry.alpha <= most * (1.0 + kRounding);
    entry.alpha = std::max(entry.alpha, -most);
    others -= entry.alpha;
  }
  const double own = Form::own(given, others, C);
  feasible = feasible && std::abs(own - given) <= kRounding * given;
  if constexpr (!Form::kOwnMoves) feasible = feasible && std::abs(others - given) <= kRounding * given;
  require(feasible, "a row of alpha must be feasible for its cost");
  problem.dual().set(i, own, entries.data(), std::ssize(entries));
}

// Sets alpha to a feasible point, given as CSR.
void set_dual(LinearProblem& problem, const ConstVectorOf<std::int64_t>& indptr,
              const ConstVectorOf<std::int32_t>& classes, const ConstVector& values) {
  nb::gil_scoped_release released;
  const LabelledRows task = problem.task();
  const Index n = problem.dual().size();
  const std::int64_t* starts = indptr.data();
  require(length(indptr) == n + 1 && starts[0] == 0 && starts[n] == length(classes) &&
              length(classes) == length(values),
          "indptr, classes and values must be CSR with one row per sample");
  require(std::is_sorted(starts, starts + n + 1), "indptr must not decrease");
  problem.with_form([&]<class Machine>(std::type_identity<Machine>) {
    std::vector<SparseDual::Entry> entries;
    for (Index i = 0; i < n; ++i) {
      entries.clear();
      double own = 0.0;
      for (Index k = starts[i]; k < starts[i + 1]; ++k) {
        const std::int32_t r = classes.data()[k];
        const double value = values.data()[k];
        require(r >= 0 && r < task.m, "classes must be in 0..m-1");
        require(r == task.y[i] ? value >= 0.0 : value <= 0.0,
                "entries must not be negative at the label, and not positive elsewhere");
        if (r == task.y[i]) own = value;
        if (r != task.y[i] && value != 0.0) entries.push_back({r, value});
      }
      set_row<LinearForm<Machine>>(problem, i, own, entries);
    }
  });
}

// Sets alpha to a feasible point, given as an array (n, m).
void set_dense_dual(LinearProblem& problem, const ConstMatrix& alpha) {
  nb::gil_scoped_release released;
  const LabelledRows task = problem.task();
  require(length(alpha) == problem.dual().size() && length(alpha, 1) == task.m, "alpha must be (samples, classes)");
  problem.with_form([&]<class Machine>(std::type_identity<Machine>) {
    std::vector<SparseDual::Entry> entries;
    for (Index i = 0; i < problem.dual().size(); ++i) {
      const double* row = alpha.data() + i * task.m;
      entries.clear();
      for (Index r = 0; r < task.m; ++r)
        if (r != task.y[i] && row[r] != 0.0) entries.push_back({static_cast<std::int32_t>(r), row[r]});
      const auto negative = [](const SparseDual::Entry& entry) { return entry.alpha < 0.0; };
      require(row[task.y[i]] >= 0.0 && std::all_of(entries.begin(), entries.end(), negative),
              "entries must not be negative at the label, and not positive elsewhere");
      set_row<LinearForm<Machine>>(problem, i, row[task.y[i]], entries);
    }
  });
}

LinearWeights<double> plain_weights(const LinearProblem& problem, const Matrix& weights) {
  const Index features = problem.rows().features(), width = length(weights, 1);
  require(length(weights) == features && width % kClassLanes == 0 && width >= problem.m(),
          "weights must have one row per feature, with all classes in rows of a multiple of 8");
  return {weights.data(), features, width, 1};
}

void take_proximal_point(const LinearProblem& problem, const Matrix& weights, const ConstMatrix& centre,
                         const ConstVector& t, const Matrix& alpha, const Matrix& product) {
  nb::gil_scoped_release released;
  const Index n = problem.rows().rows(), m = problem.m();
  require(length(centre) == n && length(centre, 1) == m && length(alpha) == n && length(alpha, 1) == m,
          "centre and alpha must be (samples, classes)");
  require(length(t) == n, "t must have one value per sample");
  proximal_point(problem, plain_weights(problem, weights), centre.data(), t.data(), alpha.data());
  weights_of(problem, alpha.data(), plain_weights(problem, product));
}

// A binding can hold a PassRunner only by a pointer, because the machine and the type of the weights decide what it is.
using Runner = std::unique_ptr<PassRunner>;

void make_runner(Runner* self, LinearProblem& problem, const Weights& weights, const std::string& update, double tau,
                 std::uint64_t seed, bool together) {
  nb::gil_scoped_release released;
  require(tau >= 0.0, "tau must not be negative");
  const UpdateRule rule{update, tau};
  with_weights(problem, weights, [&]<class W>(const LinearWeights<W>& w) {
    problem.with_form([&]<class Machine>(std::type_identity<Machine>) {
      new (self) Runner(
          std::make_unique<MachinePasses<W, Machine>>(problem.task(), w, &problem.dual(), rule, seed, together));
    });
  });
}

void begin_pass(Runner& self, bool all, double threshold, double relax, double margin, bool shuffle, double stretch) {
  nb::gil_scoped_release released;
  require(threshold >= 0.0 && margin >= 0.0, "threshold and margin must not be negative");
  require(0.0 < relax && relax < 2.0, "relax must be between 0 and 2");
  require(stretch >= 1.0, "stretch must be at least 1");
  const PassRule rule{threshold, relax, margin, shuffle, false, stretch};
  self->begin(all, rule);
}

auto go_on(Runner& self, Index pieces) {
  nb::gil_scoped_release released;
  require(pieces >= 1, "pieces must be at least 1");
  const PassResult r = self->go_on(pieces);
  return std::tuple(r.visits, r.updates, r.active, r.violation, r.total, r.change, r.gap);
}

nb::ndarray<nb::numpy, std::int64_t> told_steps(Runner& self, double stretch) {
  std::vector<std::int64_t> message;
  {
    nb::gil_scoped_release released;
    require(self->shares(), "steps are not shared");
    message = self->steps(stretch);
  }
  return to_numpy(std::move(message));
}

void make_steps(Runner& self, const ConstVectorOf<std::int64_t>& message, double factor) {
  nb::gil_scoped_release released;
  require(self->shares(), "steps are not shared");
  self->make(message.data(), length(message), factor);
}

template <class I>
void bind_sparse_problem(nb::class_<LinearProblem>& problem) {
  problem.def("__init__", &sparse_problem<I>, "machine"_a, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "d"_a, "y"_a.noconvert(), "C"_a.noconvert(), "m"_a, "constant"_a, "n_threads"_a,
              "parts"_a = 1, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
              nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<LinearProblem> problem(m, "LinearProblem");
  problem.def("__init__", &dense_problem, "machine"_a, "X"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "m"_a,
              "constant"_a, "n_threads"_a, "parts"_a = 1, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
              nb::keep_alive<1, 5>());
  bind_sparse_problem<std::int32_t>(problem);
  bind_sparse_problem<std::int64_t>(problem);
  problem.def("measure", &measure, "weights"_a.noconvert(), "step"_a = 1,
           "Measures every step-th sample with fixed weights: (largest violation, largest gain / C, gap, loss), the "
           "last two as sums.")
      .def("rebuild", &rebuild, "weights"_a.noconvert(), "Computes the weights from the dual alone.")
      .def("dual", &dual_arrays, "alpha as (indptr, classes, values).")
      .def("set_dual", &set_dual, "indptr"_a.noconvert(), "classes"_a.noconvert(), "values"_a.noconvert(),
           "Sets alpha to a feasible point, given as CSR.")
      .def("set_dense_dual", &set_dense_dual, "alpha"_a.noconvert(),
           "Sets alpha to a feasible point, given as an array (samples, classes).")
      .def("proximal_point", &take_proximal_point, "weights"_a.noconvert(), "centre"_a.noconvert(), "t"_a.noconvert(),
           "alpha"_a.noconvert(), "product"_a.noconvert(),
           "Writes alpha(W), the projection of centre - t times the gradient that it would have with these "
           "weights, and "
           "the weights of alpha(W).")
      .def("norms", [](const LinearProblem& self) { return to_numpy(std::vector<double>(self.norms())); },
           "|x_i|^2 of all samples.")
      .def("conjugate", &LinearProblem::conjugate, nb::call_guard<nb::gil_scoped_release>(),
           "The part of the dual objective beside |W|^2 / 2.")
      .def("support", [](const LinearProblem& self) { return self.dual().support(); },
           "Number of samples with alpha_i != 0.");
  m.def("squared_norm", &norm, "weights"_a.noconvert(), "n_threads"_a = 1, "|W|^2 in float64.");
  nb::class_<Runner>(m, "PassRunner")
      .def("__init__", &make_runner, "problem"_a, "weights"_a.noconvert(), "update"_a, "tau"_a, "seed"_a,
           "together"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("part", [](Runner& self) { self->part(); },
           "Go on without threads.")
      .def("begin", &begin_pass, "all"_a, "threshold"_a, "relax"_a, "margin"_a, "shuffle"_a, "stretch"_a = 1.0,
           "Begins a pass over all samples or the active ones.")
      .def("go_on", &go_on, "pieces"_a = 1,
           "Visits the first of so many equal pieces of what is left of the pass; returns (visits, updates, active, "
           "violation, total, change of the dual, gap as far as seen) of the pass so far.")
      .def("share", [](Runner& self) { self->share(); },
           "Share steps with other processes from now on.")
      .def("steps", &told_steps, "stretch"_a, "The steps since the last call, over stretch, as a message.")
      .def("make", &make_steps, "message"_a.noconvert(), "factor"_a, "Make the steps of a message, factor times.");
}

}  // namespace multimargin::bind
