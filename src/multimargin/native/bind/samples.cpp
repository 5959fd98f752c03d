// Python bindings of the platform, of samples and of integer grids: checks shapes and ids, releases the GIL.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "base/blas.hpp"
#include "base/checksum.hpp"
#include "bind/arrays.hpp"
#include "bind/capsules.hpp"
#include "samples/binary_samples.hpp"
#include "samples/dense_direct.hpp"
#include "samples/dense_product.hpp"
#include "samples/grid.hpp"
#include "samples/integer_samples.hpp"
#include "samples/sparse_direct.hpp"
#include "samples/sparse_samples.hpp"

namespace multimargin::bind {
namespace {

using namespace samples;

void bind_platform(nb::module_& m) {
  m.def("set_blas", [](nb::handle sgemm, nb::handle dgemm) {
    const std::string_view gemm = "c, c, i, i, i, v, v, i, v, i, v, v, i";
    blas::gemm_pointer<float> = function_of<blas::Gemm<float>>(sgemm, "sgemm", gemm);
    blas::gemm_pointer<double> = function_of<blas::Gemm<double>>(dgemm, "dgemm", gemm);
  }, "sgemm"_a, "dgemm"_a, "Use these BLAS functions (capsules of scipy.linalg.cython_blas).");
  m.def("openmp", &has_openmp, "Whether this build can use several threads.");
  m.def("max_threads", &max_threads, "The number of threads OpenMP would use by default.");
  m.def("end_threads", &end_threads, nb::call_guard<nb::gil_scoped_release>(),
        "End the idle threads of the calling thread; False if they are still there.");
  m.def("integer_simd", [] { return integer_simd_names[static_cast<int>(integer_simd.load())]; },
        "The instruction set that products of integers use: portable, avx2 or vnni.");
  m.def("set_integer_simd", &choose_integer_simd, "name"_a,
        "Choose it for samples made from now on; 'best' is what the machine has.");
  m.def("instruction_set", &instruction_set, "The instruction set picked for this machine.");
  m.def("checksum", [](const ConstVectorOf<std::uint8_t>& bytes) { return checksum(bytes.data(), bytes.size()); },
        "bytes"_a.noconvert(), nb::call_guard<nb::gil_scoped_release>(),
        "A number of 64 bits that stands for the bytes.");
}

constexpr const char* kDataTypes = "data must be float32 or float64";

template <template <class> class Dense>
std::unique_ptr<Samples> make_dense(const AnyMatrix& x, Index n, Index d) {
  nb::gil_scoped_release released;
  require(d >= 1, "samples need at least one feature");
  blas::to_int(d);
  return with_dtype(x, kDataTypes, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Samples> {
    return std::make_unique<Dense<T>>(static_cast<const T*>(x.data()), n, d, std::make_shared<AnyMatrix>(x));
  });
}

// Checks the positions of a CSR matrix of n rows and d columns with so many stored entries.
template <class I>
void check_positions(const ConstVectorOf<I>& indices, const ConstVectorOf<I>& pointers, Index n, Index d,
                     Index stored) {
  const I* p = pointers.data();
  require(length(pointers) == n + 1, "csr: indptr has the wrong length");
  require(p[0] == 0, "csr: indptr must start at 0");
  require(std::is_sorted(p, p + n + 1), "csr: indptr must not decrease");
  require(p[n] <= stored && p[n] <= length(indices), "csr: indptr exceeds data or indices");
  require(all_within(indices.data(), p[n], 0, d), "csr: an index is out of range");
}

template <template <class, class> class Sparse, class I>
std::unique_ptr<Samples> make_sparse(const AnyVector& data, const ConstVectorOf<I>& indices,
                                     const ConstVectorOf<I>& indptr, Index n, Index d) {
  nb::gil_scoped_release released;
  require(n >= 0 && d >= 1, "sparse: n must not be negative and d at least 1");
  require(n <= kMostNamed && d <= kMostNamed, "sparse: n and d must be at most 2^53");
  require(n <= std::numeric_limits<I>::max(), "sparse: n must fit the type of the indices");
  check_positions(indices, indptr, n, d, length(data));
  const auto owner = std::make_shared<std::tuple<AnyVector, ConstVectorOf<I>, ConstVectorOf<I>>>(data, indices, indptr);
  return with_dtype(data, kDataTypes, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Samples> {
    const Compressed<T, I> rows{static_cast<const T*>(data.data()), indices.data(), indptr.data()};
    return std::make_unique<Sparse<T, I>>(rows, n, d, owner);
  });
}

void check_integer_form(Index d, double scale) {
  require(d >= 1, "samples need at least one feature");
  require(std::isfinite(scale) && scale > 0, "scale must be a positive number");
}

template <class S>
std::unique_ptr<Samples> make_integers(const ConstMatrixOf<S>& x, double scale) {
  nb::gil_scoped_release released;
  check_integer_form(length(x, 1), scale);
  auto owner = std::make_shared<ConstMatrixOf<S>>(x);
  return std::make_unique<IntegerSamples<S>>(x.data(), length(x), length(x, 1), scale, owner);
}

template <class I>
std::unique_ptr<Samples> make_binary(ConstVectorOf<I> indices, ConstVectorOf<I> indptr, Index n, Index d,
                                     double scale) {
  nb::gil_scoped_release released;
  check_integer_form(d, scale);
  require(0 <= n && n <= kMostNamed, "binary: n must be in 0..2^53");
  require(d <= std::numeric_limits<std::uint32_t>::max(), "binary: at most 2^32 - 1 features");
  check_positions(indices, indptr, n, d, length(indices));
  ActiveFeatures rows;
  const I *columns = indices.data(), *starts = indptr.data();
  for (Index i = 0; i < n; ++i) {
    rows.features.insert(rows.features.end(), columns + starts[i], columns + starts[i + 1]);
    rows.end_row();
  }
  return std::make_unique<BinarySamples>(std::move(rows), d, scale);
}

std::unique_ptr<Samples> make_dense_binary(const ConstMatrixOf<std::uint8_t>& x, double scale) {
  nb::gil_scoped_release released;
  const Index n = length(x), d = length(x, 1);
  check_integer_form(d, scale);
  ActiveFeatures rows;
  for (Index i = 0; i < n; ++i) {
    for (Index f = 0; f < d; ++f)
      if (x.data()[i * d + f]) rows.features.push_back(static_cast<std::uint32_t>(f));
    rows.end_row();
  }
  return std::make_unique<BinarySamples>(std::move(rows), d, scale);
}

// What there is for each type of the indices of sparse data.
template <class I>
void bind_indexed(nb::module_& m) {
  m.def("sparse", &make_sparse<SparseSamples, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
        "n"_a, "d"_a, "Sparse samples (n, d) as CSR arrays, not copied; no entry may be stored twice.");
  m.def("sparse_direct", &make_sparse<SparseDirect, I>, "data"_a.noconvert(), "indices"_a.noconvert(),
        "indptr"_a.noconvert(), "n"_a, "d"_a, "The same for distances by differences, exact for any offset.");
  m.def("binary", &make_binary<I>, "indices"_a.noconvert(), "indptr"_a.noconvert(), "n"_a, "d"_a, "scale"_a,
        "Samples (n, d) that are `scale` at the places of a CSR matrix, 0 elsewhere; none may be named twice.");
}

auto range_on_grid(const AnyVector& x, double scale) {
  nb::gil_scoped_release released;
  return with_dtype(x, kDataTypes, [&]<class T>(std::type_identity<T>) {
    return grid_range(static_cast<const T*>(x.data()), length(x), scale);
  });
}

auto scale_of_grid(const AnyVector& x) {
  nb::gil_scoped_release released;
  return with_dtype(x, kDataTypes, [&]<class T>(std::type_identity<T>) {
    return grid_scale(static_cast<const T*>(x.data()), length(x));
  });
}

template <class S>
void convert_to_grid(const AnyVector& x, double scale, const Array<S, 1>& out) {
  nb::gil_scoped_release released;
  require(length(out) == length(x), "out: one integer for each value expected");
  with_dtype(x, kDataTypes, [&]<class T>(std::type_identity<T>) {
    to_grid(static_cast<const T*>(x.data()), length(x), scale, out.data());
  });
}

template <class S>
void convert_from_grid(const Array<const S, 1>& whole, double by, bool divides,
                       const nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
  nb::gil_scoped_release released;
  require(length(out) == length(whole), "out: one value for each integer expected");
  with_dtype(out, kDataTypes, [&]<class T>(std::type_identity<T>) {
    from_grid(whole.data(), length(whole), by, divides, static_cast<T*>(out.data()));
  });
}

// What there is for each type of small integers.
template <class S>
void bind_integers(nb::module_& m) {
  m.def("integers", &make_integers<S>, "X"_a.noconvert(), "scale"_a,
        "Dense samples scale * X (n, d), small integers kept as such; exact products.");
  m.def("to_grid", &convert_to_grid<S>, "x"_a.noconvert(), "scale"_a, "out"_a.noconvert(),
        "out[i] = round(x[i] / scale) of values on the grid.");
  m.def("from_grid", &convert_from_grid<S>, "whole"_a.noconvert(), "by"_a, "divides"_a, "out"_a.noconvert(),
        "out[i] = whole[i] / by if it divides, else whole[i] * by.");
}

}  // namespace

void bind_samples(nb::module_& m) {
  bind_platform(m);
  m.def("dense_product", [](const AnyMatrix& x) { return make_dense<DenseProduct>(x, length(x), length(x, 1)); },
        "X"_a.noconvert(), "Dense samples X (n, d), not copied; inner products by BLAS.");
  m.def("dense_direct", [](const AnyMatrix& xt) { return make_dense<DenseDirect>(xt, length(xt, 1), length(xt)); },
        "Xt"_a.noconvert(), "Dense samples Xt (d, n), not copied; differences or products summed directly.");
  bind_integers<std::uint8_t>(m);
  bind_integers<std::int8_t>(m);
  bind_integers<std::int16_t>(m);
  m.def("binary", &make_dense_binary, "X"_a.noconvert(), "scale"_a, "Samples (n, d): `scale` if X is not 0, else 0.");
  bind_indexed<std::int32_t>(m);
  bind_indexed<std::int64_t>(m);
  m.def("grid_scale", &scale_of_grid, "x"_a.noconvert(),
        "The largest scale of which a sample of values may be small integers, else None.");
  m.def("grid_range", &range_on_grid, "x"_a.noconvert(), "scale"_a,
        "Smallest and largest integer and 0, if all x are integers times scale, else None.");
}

}  // namespace multimargin::bind
