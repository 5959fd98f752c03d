// Products of a symmetric kernel block with a few columns, most of whose entries are zero: only the others cost.
#pragma once

#include "base/row_loops.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

// out = K d for d of m columns, in O(q nnz(d)): K is read in its own precision, and sums are in double. Tiles of K's
// columns are tasks, so that the result does not depend on the number of threads. If the block is shared, each process
// computes the rows of the result that belong to its columns.
template <class T>
class SparseProduct {
 public:
  SparseProduct(const Subproblem<T>& block, int n_threads) : b_(block), n_threads_(n_threads) {}

  void operator()(const double* d, double* out) {
    list(d);
    double* values = out;
    if (b_.shared) {
      part_.resize(static_cast<std::size_t>(b_.columns() * b_.m));
      values = part_.data();
    }
    const Index columns = b_.columns();
    const int threads = worthwhile_threads(n_threads_, 2.0 * static_cast<double>(work()));
    parallel_tasks((columns + kTile - 1) / kTile, threads, [&] {
      return [&, sums = std::vector<double>(static_cast<std::size_t>(b_.m * kTile))](Index task) mutable {
        const Index begin = task * kTile;
        add(begin, std::min(kTile, columns - begin), sums.data(), values);
      };
    });
    if (b_.shared) b_.shared->exchange(values, out);
  }

  // Kernel values read by the last product.
  Index work() const { return nonzeros_ * b_.columns(); }

 private:
  static constexpr Index kTile = 512;   // columns of K: the sums of several columns of d stay in a near cache
  static constexpr Index kBatch = 128;  // rows of K: they stay there from one column of d to the next
  static constexpr Index kTogether = 4;

  struct Entry {
    Index row;
    double value;
  };

  // The non-zero entries of d, batch by batch of rows, and in a batch column by column. Zeros fill each such group up
  // to a multiple of kTogether.
  void list(const double* d) {
    entries_.resize(static_cast<std::size_t>(b_.q * b_.m + (b_.q / kBatch + 1) * b_.m * kTogether));
    ends_.clear();
    nonzeros_ = 0;
    Index count = 0;
    for (Index first = 0; first < b_.q; first += kBatch)
      for (Index r = 0; r < b_.m; ++r) {
        const Index begin = count;
        for (Index i = first; i < std::min(first + kBatch, b_.q); ++i) {
          const double value = d[i * b_.m + r];
          entries_[count] = {i, value};
          count += value != 0.0;
        }
        nonzeros_ += count - begin;
        for (; count % kTogether != 0; ++count) entries_[count] = {first, 0.0};
        ends_.push_back(count);
      }
  }

  // Columns begin..begin+n-1 of K: their rows of the result. `sums` has room for n values per column of d.
  void add(Index begin, Index n, double* sums, double* out) const {
    std::fill_n(sums, b_.m * n, 0.0);
    const auto row = [=, this](Index k) { return b_.K + entries_[k].row * b_.K_stride + begin; };
    Index k = 0;
    for (std::size_t group = 0; group < ends_.size(); ++group)
      for (double* sum = sums + static_cast<Index>(group) % b_.m * n; k < ends_[group]; k += kTogether)
        add_four_rows(row(k), row(k + 1), row(k + 2), row(k + 3), entries_[k].value, entries_[k + 1].value,
                      entries_[k + 2].value, entries_[k + 3].value, n, sum);
    for (Index r = 0; r < b_.m; ++r)
      for (Index j = 0; j < n; ++j) out[(begin + j) * b_.m + r] = sums[r * n + j];
  }

  Subproblem<T> b_;
  int n_threads_;
  std::vector<double> part_;  // of a shared product
  std::vector<Entry> entries_;
  std::vector<Index> ends_;  // of the groups
  Index nonzeros_ = 0;
};

}  // namespace multimargin::solvers
