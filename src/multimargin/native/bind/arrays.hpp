// What all bindings need of arrays: types, sizes, complaints.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>

#include "base/platform.hpp"

namespace multimargin::bind {

// Contiguous arrays of one dtype, to read.
template <class T>
using ConstVectorOf = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using ConstMatrixOf = nanobind::ndarray<const T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool holds, const std::string& message) {
  if (!holds) throw nanobind::value_error(message.c_str());
}
inline void require(bool holds, const char* message) {
  if (!holds) throw nanobind::value_error(message);
}

template <class A>
Index length(const A& array, std::size_t axis = 0) {
  return static_cast<Index>(array.shape(axis));
}

inline int checked_threads(int n_threads) {
  require(n_threads >= 1, "n_threads must be at least 1");
  return n_threads;
}

}  // namespace multimargin::bind
