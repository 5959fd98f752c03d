// A block whose columns are spread over several processes, each of which solves it alike (Niu & Yuan, Algorithm 5).
#pragma once

#include <functional>

#include "base/platform.hpp"

namespace multimargin::solvers {

// The columns of K that this process has. A product K d is put together from the entries that each process computes:
// exchange(part, whole) sends this process's `columns` rows of the product, and receives all q rows.
struct SharedColumns {
  Index columns;
  std::function<void(const double* part, double* whole)> exchange;
};

}  // namespace multimargin::solvers
