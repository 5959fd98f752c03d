// Products of a symmetric kernel block with a vector that is mostly zero: only the rows of its non-zeros are read.
#pragma once

#include "base/row_loops.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// out = K v over the entries v_k != 0, on tiles of columns, in O(q nnz(v)). The result does not depend on the number of
// threads. If the block is shared, each process computes the entries of its columns.
template <class T>
class SparseProduct {
 public:
  SparseProduct(const Subproblem<T>& block, int n_threads) : b_(block), n_threads_(n_threads) {}

  void operator()(const double* v, double* out) {
    rows_.clear();
    for (Index k = 0; k < b_.q; ++k)
      if (v[k] != 0.0) rows_.push_back(k);
    double* values = out;
    if (b_.shared) {
      part_.resize(static_cast<std::size_t>(b_.columns()));
      values = part_.data();
    }
    const double work = 2.0 * static_cast<double>(rows_.size()) * static_cast<double>(b_.columns());
    parallel_ranges(b_.columns(), kTile, worthwhile_threads(n_threads_, work),
                    [&](Index begin, Index end) { add(v, begin, end - begin, values + begin); });
    if (b_.shared) b_.shared->exchange(values, out);
  }

  // Kernel values read by the last product.
  Index work() const { return static_cast<Index>(rows_.size()) * b_.columns(); }

 private:
  static constexpr Index kTile = 512;  // columns: their sums stay in the first level cache

  void add(const double* v, Index begin, Index n, double* out) const {
    const auto row = [=, this](std::size_t k) { return b_.K + rows_[k] * b_.K_stride + begin; };
    const auto factor = [=, this](std::size_t k) { return v[rows_[k]]; };
    std::fill_n(out, n, 0.0);
    std::size_t k = 0;
    for (; k + 4 <= rows_.size(); k += 4)
      add_four_rows(row(k), row(k + 1), row(k + 2), row(k + 3), factor(k), factor(k + 1), factor(k + 2), factor(k + 3),
                    n, out);
    for (; k < rows_.size(); ++k) add_four_rows(row(k), row(k), row(k), row(k), factor(k), 0.0, 0.0, 0.0, n, out);
  }

  Subproblem<T> b_;
  int n_threads_;
  std::vector<double> part_;
  std::vector<Index> rows_;
};

}  // namespace multimargin::solvers
