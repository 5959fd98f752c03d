// Kernel rows as the solvers' bindings take them, and the options of the projected gradient method.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "base/platform.hpp"
#include "bind/arrays.hpp"
#include "solvers/projected_gradient.hpp"

namespace multimargin::bind {

using namespace solvers;

// float32 or float64, rows contiguous but perhaps apart (a corner of a larger array).
using KernelRows = nanobind::ndarray<nanobind::ro, nanobind::ndim<2>, nanobind::device::cpu>;

// Calls work(first element, row stride) for the dtype at hand.
template <class Work>
auto with_rows(const KernelRows& rows, Work work) {
  require(rows.shape(1) < 2 || rows.stride(1) == 1, "kernel rows must be contiguous along the last axis");
  const Index stride = rows.stride(0);
  if (rows.dtype() == nanobind::dtype<float>()) return work(static_cast<const float*>(rows.data()), stride);
  if (rows.dtype() == nanobind::dtype<double>()) return work(static_cast<const double*>(rows.data()), stride);
  throw nanobind::type_error("kernel rows must be float32 or float64");
}

inline GradientOptions gradient_options(double eps, Index max_iter, double rho_min, double rho_max, Index memory,
                                        Index patience, const std::string& initial_step) {
  require(eps >= 0.0, "eps must not be negative");
  require(max_iter >= 0, "max_iter must not be negative");
  require(0.0 < rho_min && rho_min <= rho_max, "0 < rho_min <= rho_max must hold");
  require(memory >= 0 && patience >= 1, "memory must be at least 0 and patience at least 1");
  require(initial_step == "ell" || initial_step == "projected", "initial_step must be 'projected' or 'ell'");
  return {eps, max_iter, rho_min, rho_max, memory, patience, initial_step == "ell"};
}

}  // namespace multimargin::bind
