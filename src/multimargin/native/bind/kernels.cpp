// Python bindings of samples, kernel blocks and scores: checks shapes and ids, releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/blas.hpp"
#include "base/platform.hpp"
#include "bind/arrays.hpp"
#include "kernel/kernel_block.hpp"
#include "kernel/kernel_scores.hpp"
#include "samples/binary_samples.hpp"
#include "samples/dense_direct.hpp"
#include "samples/dense_product.hpp"
#include "samples/grid.hpp"
#include "samples/integer_samples.hpp"
#include "samples/sparse_samples.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace multimargin::bind {

using namespace kernel;
using namespace samples;
namespace {

template <class T>
using Vector = ConstVectorOf<T>;
template <class T>
using Matrix = ConstMatrixOf<T>;
using Scale = std::optional<Vector<double>>;
using Ids = Vector<Index>;

void check_ids(const Ids& ids, Index limit, const char* name) {
  for (Index k = 0; k < length(ids); ++k)
    require(ids.data()[k] >= 0 && ids.data()[k] < limit,
            std::string(name) + ": " + std::to_string(ids.data()[k]) + " is not in 0.." + std::to_string(limit - 1));
}

const double* check_scale(const Scale& scale, const Samples& samples, const char* name) {
  if (!scale) return nullptr;
  require(length(*scale) == samples.n(), std::string(name) + ": one value a sample expected");
  return scale->data();
}

KernelOperands check_operands(const KernelSpec& spec, const Samples& a, const Samples& b, const Scale& a_scale,
                      const Scale& b_scale, const char* a_name, const char* b_name) {
  if (!b.comparable_with(a)) throw nb::type_error("both samples must be of the same kind and data type");
  require(a.d() == b.d(), "both samples must have the same number of features");
  return {spec, a, b, check_scale(a_scale, a, a_name), check_scale(b_scale, b, b_name)};
}

void check_range(Index begin, Index end, Index n) {
  require(0 <= begin && begin <= end && end <= n, "the range of rows must lie in 0.." + std::to_string(n));
}

using Doubles = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

Doubles to_numpy(std::unique_ptr<std::vector<double>> values) {
  std::vector<double>* raw = values.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return Doubles(raw->data(), {raw->size()}, owner);
}

template <class T>
void set_gemm(nb::handle capsule, const char* name) {
  if (!PyCapsule_CheckExact(capsule.ptr()))
    throw nb::type_error((std::string(name) + ": a PyCapsule expected").c_str());
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (!pointer) throw nb::python_error();
  blas::gemm_pointer<T> = reinterpret_cast<blas::Gemm<T>>(pointer);
}

template <template <class> class Dense, class T>
std::unique_ptr<Samples> make_dense(Matrix<T> x, Index n, Index d) {
  require(d >= 1, "samples need at least one feature");
  blas::to_int(d);
  auto owner = std::make_shared<Matrix<T>>(x);
  return std::make_unique<Dense<T>>(x.data(), n, d, owner);
}

// Checks one compressed matrix of `lines` lines with indices below `limit`.
template <class T, class I>
Compressed<T, I> check_compressed(const Vector<T>& data, const Vector<I>& indices, const Vector<I>& pointers,
                                  Index lines, Index limit, const char* name) {
  const auto fail = [&](const char* what) { throw nb::value_error((std::string(name) + ": " + what).c_str()); };
  if (length(pointers) != lines + 1) fail("indptr has the wrong length");
  const I* p = pointers.data();
  if (p[0] != 0) fail("indptr must start at 0");
  for (Index i = 0; i < lines; ++i)
    if (p[i + 1] < p[i]) fail("indptr must not decrease");
  if (p[lines] > length(data) || p[lines] > length(indices)) fail("indptr exceeds data or indices");
  for (Index k = 0; k < p[lines]; ++k)
    if (indices.data()[k] < 0 || indices.data()[k] >= limit) fail("an index is out of range");
  return {data.data(), indices.data(), p};
}

template <class T, class I>
std::unique_ptr<Samples> make_sparse(Vector<T> data, Vector<I> indices, Vector<I> indptr, Vector<T> csc_data,
                                     Vector<I> csc_indices, Vector<I> csc_indptr, Index n, Index d) {
  require(n >= 0 && d >= 1, "sparse: n must not be negative and d at least 1");
  const auto rows = check_compressed(data, indices, indptr, n, d, "csr");
  const auto columns = check_compressed(csc_data, csc_indices, csc_indptr, d, n, "csc");
  require(rows.pointers[n] == columns.pointers[d], "sparse: csr and csc hold different numbers of entries");
  using Owner = std::tuple<std::array<Vector<T>, 2>, std::array<Vector<I>, 4>>;
  auto owner = std::make_shared<Owner>(std::array{data, csc_data},
                                       std::array{indices, indptr, csc_indices, csc_indptr});
  return std::make_unique<SparseSamples<T, I>>(rows, columns, n, d, owner);
}

// out may be any matrix whose rows are contiguous, for instance some columns of a wider one.
template <class Out>
void block(const KernelSpec& spec, const Samples& a, const Ids& a_ids, const Samples& b, Index b_begin, Index b_end,
           const Scale& a_scale, const Scale& b_scale, nb::ndarray<Out, nb::ndim<2>, nb::device::cpu> out,
           const Ids& out_rows, int n_threads) {
  const KernelOperands operands = check_operands(spec, a, b, a_scale, b_scale, "a_scale", "b_scale");
  check_ids(a_ids, a.n(), "a_ids");
  check_range(b_begin, b_end, b.n());
  require(length(out_rows) == length(a_ids), "out_rows: one row for each of a_ids expected");
  check_ids(out_rows, length(out), "out_rows");
  require(length(out, 1) >= b_end - b_begin, "out has too few columns");
  require(out.stride(1) == 1 || length(out, 1) <= 1, "the rows of out must be contiguous");
  checked_threads(n_threads);
  const OutRows<Out> rows{out.data(), out.stride(0), out_rows.data()};
  nb::gil_scoped_release release;
  kernel_block<Out>(operands, a_ids.data(), length(a_ids), b_begin, b_end, rows, n_threads);
}

void scores(const KernelSpec& spec, const Samples& sv, const Matrix<double>& coef, const Samples& x, Index x_begin,
            Index x_end, const Scale& sv_scale, const Scale& x_scale,
            nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> scores, int n_threads) {
  const KernelOperands operands = check_operands(spec, sv, x, sv_scale, x_scale, "sv_scale", "x_scale");
  check_range(x_begin, x_end, x.n());
  require(length(coef) == sv.n(), "coef: one row for each support vector expected");
  require(length(scores) == x_end - x_begin && length(scores, 1) == length(coef, 1),
          "scores must have one row for each x and one column for each of coef");
  checked_threads(n_threads);
  nb::gil_scoped_release release;
  kernel_scores(operands, coef.data(), length(coef, 1), x_begin, x_end, scores.data(), n_threads);
}

Doubles squared_norms(const Samples& samples) {
  auto copy = std::make_unique<std::vector<double>>();
  {
    nb::gil_scoped_release release;
    *copy = samples.squared_norms();
    const double unit = samples.expansion(Comparison::product).unit;
    for (double& norm : *copy) norm *= unit;
  }
  return to_numpy(std::move(copy));
}

Doubles diagonal(const Samples& samples, const KernelSpec& spec, const Scale& scale) {
  const double* factors = check_scale(scale, samples, "scale");
  auto values = std::make_unique<std::vector<double>>(samples.n());
  {
    nb::gil_scoped_release release;
    kernel_diagonal(spec, samples, factors, values->data());
  }
  return to_numpy(std::move(values));
}

std::unique_ptr<Samples> take(const Samples& samples, const Ids& ids) {
  check_ids(ids, samples.n(), "ids");
  nb::gil_scoped_release release;
  return samples.take(ids.data(), length(ids));
}

void bind_platform(nb::module_& m) {
  m.def("set_blas", [](nb::handle sgemm, nb::handle dgemm) {
    set_gemm<float>(sgemm, "sgemm");
    set_gemm<double>(dgemm, "dgemm");
  }, "sgemm"_a, "dgemm"_a, "Use these BLAS functions (capsules of scipy.linalg.cython_blas).");
  m.def("openmp", &has_openmp, "Whether this build can use several threads.");
  m.def("max_threads", &max_threads, "The number of threads OpenMP would use by default.");
  m.def("integer_simd", [] { return integer_simd_names[static_cast<int>(integer_simd.load())]; },
        "The instruction set that products of integers use: portable, avx2 or vnni.");
  m.def("set_integer_simd", &choose_integer_simd, "name"_a,
        "Choose it for samples made from now on; 'best' is what the machine has.");
  m.def("instruction_set", &instruction_set, "The instruction set picked for this machine.");
}

template <class T>
void bind_dense(nb::module_& m) {
  m.def("dense_product", [](Matrix<T> x) { return make_dense<DenseProduct, T>(x, length(x), length(x, 1)); },
        "X"_a.noconvert(), "Dense samples X (n, d), not copied; inner products by BLAS.");
  m.def("dense_direct", [](Matrix<T> xt) { return make_dense<DenseDirect, T>(xt, length(xt, 1), length(xt)); },
        "Xt"_a.noconvert(), "Dense samples Xt (d, n), not copied; differences or products summed directly.");
}

void check_integer_form(Index d, double scale) {
  require(d >= 1, "samples need at least one feature");
  require(std::isfinite(scale) && scale > 0, "scale must be a positive number");
}

template <class S>
void bind_integers(nb::module_& m) {
  m.def("integers", [](Matrix<S> x, double scale) {
    check_integer_form(length(x, 1), scale);
    auto owner = std::make_shared<Matrix<S>>(x);
    std::unique_ptr<Samples> samples;
    nb::gil_scoped_release release;
    samples = std::make_unique<IntegerSamples<S>>(x.data(), length(x), length(x, 1), scale, owner);
    return samples;
  }, "X"_a.noconvert(), "scale"_a, "Dense samples scale * X (n, d), small integers kept as such; exact products.");
}

template <class I>
std::unique_ptr<Samples> make_binary(Vector<I> indices, Vector<I> indptr, Index n, Index d, double scale) {
  check_integer_form(d, scale);
  require(n >= 0, "binary: n must not be negative");
  check_compressed(indices, indices, indptr, n, d, "csr");
  nb::gil_scoped_release release;
  ActiveFeatures rows;
  for (Index i = 0; i < n; ++i) {
    rows.features.insert(rows.features.end(), indices.data() + indptr.data()[i], indices.data() + indptr.data()[i + 1]);
    rows.end_row();
  }
  return std::make_unique<BinarySamples>(std::move(rows), d, scale);
}

std::unique_ptr<Samples> make_dense_binary(const Matrix<std::uint8_t>& x, double scale) {
  const Index n = length(x), d = length(x, 1);
  check_integer_form(d, scale);
  nb::gil_scoped_release release;
  ActiveFeatures rows;
  for (Index i = 0; i < n; ++i) {
    for (Index f = 0; f < d; ++f)
      if (x.data()[i * d + f]) rows.features.push_back(static_cast<std::uint32_t>(f));
    rows.end_row();
  }
  return std::make_unique<BinarySamples>(std::move(rows), d, scale);
}

template <class I>
void bind_binary(nb::module_& m) {
  m.def("binary", &make_binary<I>, "indices"_a.noconvert(), "indptr"_a.noconvert(), "n"_a, "d"_a, "scale"_a,
        "Samples (n, d) that are `scale` at the places of a CSR matrix, 0 elsewhere; none may be named twice.");
}

template <class T, class S>
void bind_to_grid(nb::module_& m) {
  using Out = nb::ndarray<S, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def("to_grid", [](const Vector<T>& x, double scale, Out out) {
    require(length(out) == length(x), "out: one integer for each value expected");
    nb::gil_scoped_release release;
    to_grid(x.data(), length(x), scale, out.data());
  }, "x"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "out[i] = round(x[i] / scale) of values on the grid.");
}

template <class T>
void bind_grid(nb::module_& m) {
  m.def("grid_range", [](const Vector<T>& x, double scale) {
    nb::gil_scoped_release release;
    return grid_range(x.data(), length(x), scale);
  }, "x"_a.noconvert(), "scale"_a, "Smallest and largest integer and 0, if all x are integers times scale, else None.");
  bind_to_grid<T, std::uint8_t>(m);
  bind_to_grid<T, std::int8_t>(m);
  bind_to_grid<T, std::int16_t>(m);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def("sparse", &make_sparse<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
        "csc_data"_a.noconvert(), "csc_indices"_a.noconvert(), "csc_indptr"_a.noconvert(), "n"_a, "d"_a,
        "Sparse samples (n, d) as CSR and CSC arrays, not copied; no entry may be stored twice.");
}

template <class Out>
void bind_block(nb::module_& m) {
  m.def("kernel_block", &block<Out>, "spec"_a, "a"_a, "a_ids"_a.noconvert(), "b"_a, "b_begin"_a, "b_end"_a,
        "a_scale"_a.noconvert().none(), "b_scale"_a.noconvert().none(), "out"_a.noconvert(),
        "out_rows"_a.noconvert(), "n_threads"_a,
        "out[out_rows[k], j - b_begin] = K(a[a_ids[k]], b[j]) for b_begin <= j < b_end.");
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_platform(m);
  nb::class_<KernelSpec>(m, "KernelSpec", "A kernel's name and parameters.")
      .def(nb::init<const std::string&, double, double, int, double>(), "kind"_a, "gamma"_a, "coef0"_a, "degree"_a,
           "offset"_a)
      .def_prop_ro("kind", &KernelSpec::name)
      .def_ro("gamma", &KernelSpec::gamma)
      .def_ro("coef0", &KernelSpec::coef0)
      .def_ro("degree", &KernelSpec::degree)
      .def_ro("offset", &KernelSpec::offset);
  nb::class_<Samples>(m, "Samples", "n rows of d features, made by dense_product, dense_direct or sparse.")
      .def_prop_ro("n", &Samples::n)
      .def_prop_ro("d", &Samples::d)
      .def("sqnorms", &squared_norms, "Squared Euclidean norms of the rows.")
      .def("diag", &diagonal, "spec"_a, "scale"_a.noconvert().none(), "The kernel diagonal in float64.")
      .def("take", &take, "ids"_a.noconvert(), "A copy of some rows.")
      .def("raw_type", [](const Samples& x) { return raw_type_names[static_cast<int>(x.raw_type(x))]; },
           "The type in which pair values come: float32, float64, int32 or uint8.");
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_integers<std::uint8_t>(m);
  bind_integers<std::int8_t>(m);
  bind_integers<std::int16_t>(m);
  m.def("binary", &make_dense_binary, "X"_a.noconvert(), "scale"_a,
        "Samples (n, d) that are `scale` where X is not 0.");
  bind_binary<std::int32_t>(m);
  bind_binary<std::int64_t>(m);
  bind_grid<float>(m);
  bind_grid<double>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<float, std::int64_t>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<double, std::int64_t>(m);
  bind_block<float>(m);
  bind_block<double>(m);
  m.def("kernel_scores", &scores, "spec"_a, "sv"_a, "coef"_a.noconvert(), "x"_a, "x_begin"_a, "x_end"_a,
        "sv_scale"_a.noconvert().none(), "x_scale"_a.noconvert().none(), "scores"_a.noconvert(), "n_threads"_a,
        "scores[j - x_begin] = sum over i of K(sv[i], x[j]) coef[i] for x_begin <= j < x_end.");
}

}  // namespace multimargin::bind
