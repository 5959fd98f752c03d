// Python bindings of kernel values: blocks, scores and the kept block of a growing working set. No mathematics.
#include "kernel/kept_block.hpp"
#include "kernel/kernel_block.hpp"
#include "kernel/kernel_scores.hpp"
#include "kernel/square_scores.hpp"
#include "kernel/working_set_kernel.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/arrays.hpp"

namespace multimargin::bind {
namespace {

using namespace kernel;
using namespace samples;

KernelOperands check_operands(const KernelSpec& spec, const Samples& a, const Samples& b) {
  if (!b.comparable_with(a)) throw nb::type_error("both samples must be of the same kind and data type");
  require(a.d() == b.d(), "both samples must have the same number of features");
  return {spec, a, b};
}

// Whether ids are 0, 1, ..., n - 1.
bool are_all(const Ids& ids, Index n) {
  bool all = length(ids) == n;
  for (Index k = 0; k < length(ids) && all; ++k) all = ids.data()[k] == k;
  return all;
}

// out may be any matrix with contiguous rows, for instance some columns of a wider one.
void block(const KernelSpec& spec, const Samples& a, const Ids& a_ids, const Samples& b, Index b_begin, Index b_end,
           const WritableKernelRows& out, const Ids& out_rows, int n_threads) {
  nb::gil_scoped_release released;
  const KernelOperands operands = check_operands(spec, a, b);
  check_ids(a_ids, a.n(), "a_ids must be rows of a");
  require(0 <= b_begin && b_begin <= b_end && b_end <= b.n(), "b_begin..b_end must be rows of b");
  require(length(out_rows) == length(a_ids), "out_rows must have one row for each of a_ids");
  check_ids(out_rows, length(out), "out_rows must be rows of out");
  require(length(out, 1) >= b_end - b_begin, "out has too few columns");
  require(out.stride(1) == 1 || length(out, 1) <= 1, "the rows of out must be contiguous");
  checked_threads(n_threads);
  const Index n = a.n();
  const bool square = &a == &b && b_begin == 0 && b_end == n && n > 0 && are_all(a_ids, n) && are_all(out_rows, n);
  with_stored_dtype(out, [&]<class Out>(std::type_identity<Out>) {
    const OutRows<Out> rows{static_cast<Out*>(out.data()), out.stride(0), out_rows.data()};
    if (square) return kernel_square<Out>(operands, rows.data, rows.stride, n_threads);
    kernel_block<Out>(operands, a_ids.data(), length(a_ids), b_begin, b_end, rows, n_threads);
  });
}

void scores(const KernelSpec& spec, const Samples& sv, const ConstMatrix& coef, const Samples& x, Index x_begin,
            Index x_end, const Matrix& scores, int n_threads) {
  nb::gil_scoped_release released;
  const KernelOperands operands = check_operands(spec, sv, x);
  require(0 <= x_begin && x_begin <= x_end && x_end <= x.n(), "x_begin..x_end must be rows of x");
  require(length(coef) == sv.n(), "coef must have one row per support vector");
  require(length(scores) == x_end - x_begin && length(scores, 1) == length(coef, 1),
          "scores must have one row for each x and one column for each of coef");
  checked_threads(n_threads);
  kernel_scores(operands, coef.data(), length(coef, 1), x_begin, x_end, scores.data(), n_threads);
}

void scores_among(const KernelSpec& spec, const Samples& x, const ConstMatrix& coef, Index begin, Index end,
                  const Matrix& scores, int n_threads) {
  nb::gil_scoped_release released;
  const KernelOperands operands = check_operands(spec, x, x);
  const Index n = x.n();
  require(0 <= begin && begin <= end && end <= n, "begin..end must be rows of x");
  require(begin % kSquareTile == 0 && (end % kSquareTile == 0 || end == n), "begin and end must be whole tiles");
  require(length(coef) == n && length(scores) == n && length(scores, 1) == length(coef, 1),
          "coef and scores must have one row for each x, and as many columns");
  square_scores(operands, coef.data(), length(coef, 1), begin, end, scores.data(), checked_threads(n_threads));
}

void gradient(const KernelSpec& spec, const Samples& sv, const ConstMatrix& coef, const Samples& x, const Ids& ids,
              const ConstMatrix& base, const Matrix& G, bool steady, int n_threads) {
  nb::gil_scoped_release released;
  const KernelOperands operands = check_operands(spec, sv, x);
  const Index n = length(G), m = length(G, 1);
  require(length(coef) == sv.n() && length(coef, 1) == m, "coef must have one row per support vector, columns as G");
  require(length(ids) == x.n(), "ids must have one row of G for each x");
  check_ids(ids, n, "ids must be rows of G");
  require(length(base) == n && length(base, 1) == m, "base must have the shape of G");
  const GradientRows rows{G.data(), base.data(), ids.data()};
  kernel_gradient(operands, coef.data(), m, rows, steady, checked_threads(n_threads));
}

using Mask = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void gradient_of_pairs(const KernelSpec& spec, const Samples& samples, const ConstMatrix& alpha,
                       const ConstMatrix& start, const Mask& due, Index begin, Index end, const ConstMatrix& base,
                       const Matrix& G, bool steady, int n_threads) {
  nb::gil_scoped_release released;
  const Index n = length(G), m = length(G, 1);
  require(samples.n() == n, "G must have one row per sample");
  require(length(alpha) == n && length(alpha, 1) == m, "alpha must have the shape of G");
  require(length(start) == n && length(start, 1) == m, "start must have the shape of G");
  require(length(base) == n && length(base, 1) == m, "base must have the shape of G");
  require(length(due) == n && length(due, 1) == m, "due must have the shape of G");
  require(0 <= begin && begin <= end && end <= n, "begin..end must be rows of G");
  const DuePairs pairs{due.data(), begin, end};
  const auto compute = [&]<ScorePrecision precision>() {
    pair_gradient<precision>(spec, samples, alpha.data(), start.data(), m, pairs, base.data(), G.data(),
                             checked_threads(n_threads));
  };
  steady ? compute.operator()<ScorePrecision::steady>() : compute.operator()<ScorePrecision::fast>();
}

void set_scale(Samples& samples, const ConstVector& scale) {
  nb::gil_scoped_release released;
  require(length(scale) == samples.n(), "a scale must have one value per sample");
  samples.set_scale({scale.data(), scale.data() + length(scale)});
}

std::unique_ptr<Samples> take(const Samples& samples, const Ids& ids) {
  nb::gil_scoped_release released;
  check_ids(ids, samples.n(), "ids must be rows of the samples");
  return samples.take(ids.data(), length(ids));
}

void make_working_set_kernel(WorkingSetKernel* self, const KernelSpec& spec, const Samples& samples, int n_threads) {
  nb::gil_scoped_release released;
  new (self) WorkingSetKernel(spec, samples, checked_threads(n_threads));
}

void widen(const nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>& values, Index rows, Index columns,
           Index old_stride, Index new_stride, int n_threads) {
  nb::gil_scoped_release released;
  require(0 <= columns && columns <= old_stride && old_stride <= new_stride,
          "columns <= old_stride <= new_stride must hold");
  const Index room = length(values) - columns;  // for the starts of the rows
  require(rows >= 0 && (rows == 0 || (room >= 0 && (rows == 1 || new_stride <= room / (rows - 1)))),
          "values has no room for the wider rows");
  with_stored_dtype(values, [&]<class T>(std::type_identity<T>) {
    widen_block(static_cast<T*>(values.data()), rows, columns, old_stride, new_stride, checked_threads(n_threads));
  });
}

void retain(const WritableKernelRows& K, const Ids& kept) {
  nb::gil_scoped_release released;
  require(length(K) == 0 || K.stride(1) == 1, "K must have contiguous rows");
  check_ids(kept, std::min(length(K), length(K, 1)), "kept must be rows of K");
  for (Index k = 1; k < length(kept); ++k) require(kept.data()[k - 1] < kept.data()[k], "kept must ascend");
  with_stored_dtype(K, [&]<class T>(std::type_identity<T>) {
    retain_block(static_cast<T*>(K.data()), K.stride(0), kept.data(), length(kept));
  });
}

void extend(const WritableKernelRows& K, Index old, const KernelRows& rows, const Ids& slots, const Ids& members,
            int n_threads) {
  nb::gil_scoped_release released;
  const Index count = length(members);
  require(0 <= old && old <= count && count <= length(K) && count <= length(K, 1), "K has no room for all members");
  require(length(slots) == count - old, "slots must have one row for each new member");
  const bool fixed = K.dtype() == nb::dtype<std::uint16_t>(), from_fixed = rows.dtype() == nb::dtype<std::uint16_t>();
  require(K.stride(1) == 1 && (fixed || K.dtype() == rows.dtype() || (from_fixed && K.dtype() == nb::dtype<float>())),
          "K must have contiguous rows, and the dtype of rows, uint16, or float32 if rows are uint16");
  check_ids(slots, length(rows), "slots must be rows of rows");
  check_ids(members, length(rows, 1), "members must be columns of rows");
  const int threads = checked_threads(n_threads);
  with_stored_rows(rows, [&]<class T>(const T* first, Index stride) {
    const auto extend_as = [&]<class S>(S* values) {
      extend_block(values, K.stride(0), old, first, stride, slots.data(), members.data(), count, threads);
    };
    using Plain = std::conditional_t<std::is_same_v<T, Fixed16>, float, T>;
    fixed ? extend_as(static_cast<Fixed16*>(K.data())) : extend_as(static_cast<Plain*>(K.data()));
  });
}

}  // namespace

void bind_kernel(nb::module_& m) {
  nb::class_<KernelSpec>(m, "KernelSpec", "A kernel's name and parameters.")
      .def(nb::init<const std::string&, double, double, int, double>(), "kind"_a, "gamma"_a, "coef0"_a, "degree"_a,
           "offset"_a);
  nb::class_<Samples>(m, "Samples", "n rows of d features, in one of several layouts.")
      .def_prop_ro("n", &Samples::n)
      .def("set_scale", &set_scale, "scale"_a.noconvert(), "Sets the factors of a normalised kernel, one per row.")
      .def("take", &take, "ids"_a.noconvert(), "A copy of some rows and of their factors.");
  m.def("kernel_block", &block, "spec"_a, "a"_a, "a_ids"_a.noconvert(), "b"_a, "b_begin"_a, "b_end"_a,
        "out"_a.noconvert(), "out_rows"_a.noconvert(), "n_threads"_a,
        "out[out_rows[k], j - b_begin] = K(a[a_ids[k]], b[j]) for b_begin <= j < b_end.");
  m.def("kernel_scores", &scores, "spec"_a, "sv"_a, "coef"_a.noconvert(), "x"_a, "x_begin"_a, "x_end"_a,
        "scores"_a.noconvert(), "n_threads"_a,
        "scores[j - x_begin] = sum over i of K(sv[i], x[j]) coef[i] for x_begin <= j < x_end.");
  m.attr("SQUARE_TILE") = kSquareTile;
  m.def("square_scores", &scores_among, "spec"_a, "x"_a, "coef"_a.noconvert(), "begin"_a, "end"_a,
        "scores"_a.noconvert(), "n_threads"_a,
        "scores[j] += sum over i of K(x[i], x[j]) coef[i], over the pairs whose larger number is in begin..end, which "
        "are multiples of SQUARE_TILE, or the last row: half of the kernel values serve.");
  m.def("kernel_gradient", &gradient, "spec"_a, "sv"_a, "coef"_a.noconvert(), "x"_a, "ids"_a.noconvert(),
        "base"_a.noconvert(), "G"_a.noconvert(), "steady"_a, "n_threads"_a,
        "G[ids[j]] = base[ids[j]] + sum over i of K(sv[i], x[j]) coef[i] for all j. Kernel values are float32, if "
        "the samples allow, and so are sums of some of them unless they are to be steady.");
  m.def("pair_gradient", &gradient_of_pairs, "spec"_a, "samples"_a, "alpha"_a.noconvert(), "start"_a.noconvert(),
        "due"_a.noconvert(), "begin"_a, "end"_a, "base"_a.noconvert(), "G"_a.noconvert(), "steady"_a, "n_threads"_a,
        "G[j, r] = base[j, r] + sum over i of K(x[i], x[j]) (alpha - start)[i, r] where due[j, r], begin <= j < end; "
        "as kernel_gradient otherwise.");
  nb::class_<WorkingSetKernel>(m, "WorkingSetKernel", "Computes kernel rows of samples against each other.")
      .def("__init__", &make_working_set_kernel, "spec"_a, "samples"_a, "n_threads"_a, nb::keep_alive<1, 3>());
  m.def("widen_block", &widen, "values"_a.noconvert(), "rows"_a, "columns"_a, "old_stride"_a, "new_stride"_a,
        "n_threads"_a, "Moves the rows of a block in the flat array values further apart.");
  m.def("retain_block", &retain, "K"_a.noconvert(), "kept"_a.noconvert(), "K[i, j] = K[kept[i], kept[j]] in place.");
  m.def("extend_block", &extend, "K"_a.noconvert(), "old"_a, "rows"_a.noconvert(), "slots"_a.noconvert(),
        "members"_a.noconvert(), "n_threads"_a,
        "K[p, j] = K[j, p] = rows[slots[p - old], members[j]] for old <= p < len(members), j < len(members).");
}

}  // namespace multimargin::bind
