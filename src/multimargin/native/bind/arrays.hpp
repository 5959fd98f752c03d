// What all bindings need of arrays: types, sizes, checks.
//
// Arrays are never converted: a wrong dtype or layout is a TypeError, because results are written to the caller's
// arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "base/fixed16.hpp"
#include "base/platform.hpp"

namespace multimargin::bind {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using ConstVectorOf = Array<const T, 1>;
template <class T>
using ConstMatrixOf = Array<const T, 2>;
using Matrix = Array<double, 2>;
using ConstMatrix = Array<const double, 2>;
using Vector = Array<double, 1>;
using ConstVector = Array<const double, 1>;
using Labels = Array<const std::int32_t, 1>;
using Ids = Array<const std::int64_t, 1>;
using WritableIds = Array<std::int64_t, 1>;
// Arrays of float32 or float64, to read.
using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Kernel rows, float32 or float64: contiguous, but perhaps apart (a corner of a larger array); to read, and to write.
using KernelRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using WritableKernelRows = nb::ndarray<nb::ndim<2>, nb::device::cpu>;

inline void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

template <class A>
Index length(const A& array, std::size_t axis = 0) {
  return static_cast<Index>(array.shape(axis));
}

// Sizes and indices that are no lengths of arrays: sums and small multiples of them must fit an Index.
inline constexpr Index kMostNamed = std::numeric_limits<Index>::max() / 1024;

inline int checked_threads(int n_threads) {
  require(n_threads >= 1, "n_threads must be at least 1");
  return n_threads;
}

template <class I>
bool all_within(const I* values, Index count, Index least, Index end) {
  bool within = true;
  for (Index k = 0; k < count; ++k) within &= least <= values[k] && values[k] < end;
  return within;
}

inline void check_ids(const Ids& ids, Index limit, const char* message) {
  require(all_within(ids.data(), length(ids), 0, limit), message);
}

// Calls work(std::type_identity<T>{}) for the dtype of an array of float32 or float64.
template <class A, class Work>
auto with_dtype(const A& array, const char* message, Work work) {
  if (array.dtype() == nb::dtype<float>()) return work(std::type_identity<float>{});
  if (array.dtype() == nb::dtype<double>()) return work(std::type_identity<double>{});
  throw nb::type_error(message);
}

// The same for the values of a kernel block, which may be fixed-point numbers.
template <class A, class Work>
auto with_stored_dtype(const A& array, Work work) {
  if (array.dtype() == nb::dtype<std::uint16_t>()) return work(std::type_identity<Fixed16>{});
  return with_dtype(array, "kernel values must be float32, float64 or uint16 (fixed point)", work);
}

// Calls work(first element, row stride) for the dtype of the array.
template <class Work>
auto with_rows(const KernelRows& rows, Work work) {
  require(rows.shape(1) < 2 || rows.stride(1) == 1, "kernel rows must be contiguous along the last axis");
  return with_dtype(rows, "kernel rows must be float32 or float64", [&]<class T>(std::type_identity<T>) {
    return work(static_cast<const T*>(rows.data()), static_cast<Index>(rows.stride(0)));
  });
}

// The same for rows that may have fixed-point values.
template <class Work>
auto with_stored_rows(const KernelRows& rows, Work work) {
  if (rows.dtype() != nb::dtype<std::uint16_t>()) return with_rows(rows, work);
  require(rows.shape(1) < 2 || rows.stride(1) == 1, "kernel rows must be contiguous along the last axis");
  return work(static_cast<const Fixed16*>(rows.data()), static_cast<Index>(rows.stride(0)));
}

template <class A>
void check_shapes(const ConstMatrix& G, const A& alpha, const Labels& y, const ConstVector& C) {
  const Index n = length(G), m = length(G, 1);
  require(length(alpha) == n && length(alpha, 1) == m, "alpha must have the shape of G");
  require(length(y) == n && length(C) == n, "y and C must have one value per row of G");
}

// A state that a solver may change: also labels and costs are valid.
inline void check_state(const ConstMatrix& G, const Matrix& alpha, const Labels& y, const ConstVector& C) {
  check_shapes(G, alpha, y, C);
  require(length(G, 1) >= 2, "G needs at least two classes (columns)");
  require(all_within(y.data(), length(y), 0, length(G, 1)), "y must be in 0..m-1");
  bool valid = true;
  for (Index i = 0; i < length(C); ++i) valid &= C.data()[i] > 0.0 && C.data()[i] <= std::numeric_limits<double>::max();
  require(valid, "C must be positive and finite");
}

}  // namespace multimargin::bind
