// Python bindings of the platform, of samples and of integer grids: checks shapes and ids, releases the GIL.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "base/blas.hpp"
#include "bind/arrays.hpp"
#include "samples/binary_samples.hpp"
#include "samples/dense_direct.hpp"
#include "samples/dense_product.hpp"
#include "samples/grid.hpp"
#include "samples/integer_samples.hpp"
#include "samples/sparse_samples.hpp"

namespace multimargin::bind {
namespace {

using namespace samples;

template <class T>
void set_gemm(nb::handle capsule, const char* name) {
  if (!PyCapsule_CheckExact(capsule.ptr()))
    throw nb::type_error((std::string(name) + ": a PyCapsule expected").c_str());
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (!pointer) throw nb::python_error();
  blas::gemm_pointer<T> = reinterpret_cast<blas::Gemm<T>>(pointer);
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

template <template <class> class Dense, class T>
std::unique_ptr<Samples> make_dense(ConstMatrixOf<T> x, Index n, Index d) {
  require(d >= 1, "samples need at least one feature");
  blas::to_int(d);
  return std::make_unique<Dense<T>>(x.data(), n, d, std::make_shared<ConstMatrixOf<T>>(x));
}

template <class T>
void bind_dense(nb::module_& m) {
  using X = ConstMatrixOf<T>;
  m.def("dense_product", [](X x) { return make_dense<DenseProduct, T>(x, length(x), length(x, 1)); },
        "X"_a.noconvert(), "Dense samples X (n, d), not copied; inner products by BLAS.");
  m.def("dense_direct", [](X xt) { return make_dense<DenseDirect, T>(xt, length(xt, 1), length(xt)); },
        "Xt"_a.noconvert(), "Dense samples Xt (d, n), not copied; differences or products summed directly.");
}

// Checks a CSR matrix of n rows and d columns.
template <class T, class I>
Compressed<T, I> check_compressed(const ConstVectorOf<T>& data, const ConstVectorOf<I>& indices,
                                  const ConstVectorOf<I>& pointers, Index n, Index d) {
  const I* p = pointers.data();
  require(length(pointers) == n + 1, "csr: indptr has the wrong length");
  require(p[0] == 0, "csr: indptr must start at 0");
  require(std::is_sorted(p, p + n + 1), "csr: indptr must not decrease");
  require(p[n] <= length(data) && p[n] <= length(indices), "csr: indptr exceeds data or indices");
  require(all_within(indices.data(), p[n], 0, d), "csr: an index is out of range");
  return {data.data(), indices.data(), p};
}

template <class T, class I>
std::unique_ptr<Samples> make_sparse(ConstVectorOf<T> data, ConstVectorOf<I> indices, ConstVectorOf<I> indptr, Index n,
                                     Index d) {
  require(n >= 0 && d >= 1, "sparse: n must not be negative and d at least 1");
  require(n <= std::numeric_limits<I>::max(), "sparse: n must fit the type of the indices");
  const auto rows = check_compressed(data, indices, indptr, n, d);
  const auto owner = std::make_shared<std::tuple<decltype(data), std::array<decltype(indices), 2>>>(
      data, std::array{indices, indptr});
  nb::gil_scoped_release released;
  return std::make_unique<SparseSamples<T, I>>(rows, n, d, owner);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def("sparse", &make_sparse<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n"_a,
        "d"_a, "Sparse samples (n, d) as CSR arrays, not copied; no entry may be stored twice.");
}

void check_integer_form(Index d, double scale) {
  require(d >= 1, "samples need at least one feature");
  require(std::isfinite(scale) && scale > 0, "scale must be a positive number");
}

template <class S>
void bind_integers(nb::module_& m) {
  m.def("integers", [](ConstMatrixOf<S> x, double scale) -> std::unique_ptr<Samples> {
    check_integer_form(length(x, 1), scale);
    auto owner = std::make_shared<ConstMatrixOf<S>>(x);
    nb::gil_scoped_release released;
    return std::make_unique<IntegerSamples<S>>(x.data(), length(x), length(x, 1), scale, owner);
  }, "X"_a.noconvert(), "scale"_a, "Dense samples scale * X (n, d), small integers kept as such; exact products.");
}

template <class I>
std::unique_ptr<Samples> make_binary(ConstVectorOf<I> indices, ConstVectorOf<I> indptr, Index n, Index d,
                                     double scale) {
  check_integer_form(d, scale);
  require(n >= 0, "binary: n must not be negative");
  const auto csr = check_compressed(indices, indices, indptr, n, d);
  nb::gil_scoped_release released;
  ActiveFeatures rows;
  for (Index i = 0; i < n; ++i) {
    rows.features.insert(rows.features.end(), csr.indices + csr.begin(i), csr.indices + csr.end(i));
    rows.end_row();
  }
  return std::make_unique<BinarySamples>(std::move(rows), d, scale);
}

std::unique_ptr<Samples> make_dense_binary(const ConstMatrixOf<std::uint8_t>& x, double scale) {
  const Index n = length(x), d = length(x, 1);
  check_integer_form(d, scale);
  nb::gil_scoped_release released;
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
  m.def("to_grid", [](const ConstVectorOf<T>& x, double scale, Array<S, 1> out) {
    require(length(out) == length(x), "out: one integer for each value expected");
    nb::gil_scoped_release released;
    to_grid(x.data(), length(x), scale, out.data());
  }, "x"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "out[i] = round(x[i] / scale) of values on the grid.");
}

template <class T>
void bind_grid(nb::module_& m) {
  m.def("grid_range", [](const ConstVectorOf<T>& x, double scale) {
    nb::gil_scoped_release released;
    return grid_range(x.data(), length(x), scale);
  }, "x"_a.noconvert(), "scale"_a, "Smallest and largest integer and 0, if all x are integers times scale, else None.");
  bind_to_grid<T, std::uint8_t>(m);
  bind_to_grid<T, std::int8_t>(m);
  bind_to_grid<T, std::int16_t>(m);
}

}  // namespace

void bind_samples(nb::module_& m) {
  bind_platform(m);
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_integers<std::uint8_t>(m);
  bind_integers<std::int8_t>(m);
  bind_integers<std::int16_t>(m);
  m.def("binary", &make_dense_binary, "X"_a.noconvert(), "scale"_a, "Samples (n, d): `scale` if X is not 0, else 0.");
  bind_binary<std::int32_t>(m);
  bind_binary<std::int64_t>(m);
  bind_grid<float>(m);
  bind_grid<double>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<float, std::int64_t>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<double, std::int64_t>(m);
}

}  // namespace multimargin::bind
