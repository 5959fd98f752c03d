// The gradient after a step: G += K_W' delta, using that a row of delta has few non-zero classes.
#pragma once

#include <algorithm>
#include <vector>

#include "platform.hpp"

namespace multimargin {

// acc[classes[c] * stride + j] += values[c] * row[j] for all c and j: a class-major accumulator, so
// that every class is one contiguous multiply-add. Two classes at a time share the reading of row.
// The lines of `next`, the row to follow, are asked for ahead of time.
template <class T>
MULTIMARGIN_CLONES void add_scaled_row(const T* __restrict row, Index n, const Index* classes, const double* values,
                                       Index count, T* acc, Index stride, const T* next) {
  for (Index j = 0; j < n; j += 64 / static_cast<Index>(sizeof(T))) MULTIMARGIN_PREFETCH(next + j);
  Index c = 0;
  for (; c + 2 <= count; c += 2) {
    T* __restrict first = acc + classes[c] * stride;
    T* __restrict second = acc + classes[c + 1] * stride;
    const T a = static_cast<T>(values[c]), b = static_cast<T>(values[c + 1]);
    for (Index j = 0; j < n; ++j) {
      first[j] += a * row[j];
      second[j] += b * row[j];
    }
  }
  if (c < count) {
    T* __restrict last = acc + classes[c] * stride;
    const T a = static_cast<T>(values[c]);
    for (Index j = 0; j < n; ++j) last[j] += a * row[j];
  }
}

// The non-zero entries of the rows of a step, row after row; rows of zeros are left out.
class SparseStep {
 public:
  SparseStep(const double* delta, Index k, Index m) : used_(static_cast<std::size_t>(m), 0) {
    for (Index i = 0; i < k; ++i) {
      for (Index r = 0; r < m; ++r)
        if (delta[i * m + r] != 0.0) {
          classes_.push_back(r);
          values_.push_back(delta[i * m + r]);
          used_[static_cast<std::size_t>(r)] = 1;
        }
      if (size() > begin_.back()) {
        begin_.push_back(size());
        rows_.push_back(i);
      }
    }
  }

  Index rows() const { return static_cast<Index>(rows_.size()); }
  Index row(Index s) const { return rows_[static_cast<std::size_t>(s)]; }  // its number in delta
  Index size() const { return static_cast<Index>(values_.size()); }
  Index count(Index s) const { return begin_[static_cast<std::size_t>(s) + 1] - begin_[static_cast<std::size_t>(s)]; }
  const Index* classes(Index s) const { return classes_.data() + begin_[static_cast<std::size_t>(s)]; }
  const double* values(Index s) const { return values_.data() + begin_[static_cast<std::size_t>(s)]; }

  // All classes that occur, ascending.
  std::vector<Index> used_classes() const {
    std::vector<Index> result;
    for (std::size_t r = 0; r < used_.size(); ++r)
      if (used_[r]) result.push_back(static_cast<Index>(r));
    return result;
  }

 private:
  std::vector<Index> rows_, begin_{0}, classes_;
  std::vector<double> values_;
  std::vector<char> used_;
};

// One row of K: G[j, classes] += row[j] values, in place.
template <class T>
MULTIMARGIN_CLONES void add_one_row(const T* row, Index begin, Index end, const Index* classes, const double* values,
                                    Index count, Index m, double* G) {
  for (Index j = begin; j < end; ++j) {
    const double k = static_cast<double>(row[j]);
    for (Index c = 0; c < count; ++c) G[j * m + classes[c]] += k * values[c];
  }
}

// Columns of K taken together, so that the sums of all classes stay in the first level cache.
template <class T>
Index gradient_tile(Index m) {
  constexpr Index cache = 24 << 10;
  return std::clamp<Index>(cache / (static_cast<Index>(sizeof(T)) * m) / 16 * 16, 64, 8192);
}

// One thread's share of G += K' delta: tiles of columns, each summed over all rows. Sums run in the
// precision of the rows, over a batch of them, then in double.
template <class T>
class GradientWorker {
 public:
  GradientWorker(const SparseStep& step, Index m, Index tile)
      : step_(step), used_(step.used_classes()), m_(m), tile_(tile), part_(static_cast<std::size_t>(m * tile)),
        sum_(static_cast<std::size_t>(m * tile)) {}

  // row_of(s) is the kernel row of the step's s-th row; columns begin..end-1.
  template <class RowOf>
  void operator()(RowOf row_of, Index begin, Index end, double* G) {
    constexpr Index batch = 64;
    const Index width = end - begin, rows = step_.rows();
    for (Index r : used_) std::fill_n(sum_.data() + r * tile_, width, 0.0);
    for (Index first = 0; first < rows; first += batch) {
      for (Index r : used_) std::fill_n(part_.data() + r * tile_, width, T(0));
      for (Index s = first; s < std::min(first + batch, rows); ++s)
        add_scaled_row(row_of(s) + begin, width, step_.classes(s), step_.values(s), step_.count(s), part_.data(),
                       tile_, row_of(std::min(s + 1, rows - 1)) + begin);
      for (Index r : used_) add_part(part_.data() + r * tile_, width, sum_.data() + r * tile_);
    }
    for (Index j = 0; j < width; ++j)
      for (Index r : used_) G[(begin + j) * m_ + r] += sum_[static_cast<std::size_t>(r * tile_ + j)];
  }

 private:
  static MULTIMARGIN_CLONES void add_part(const T* __restrict part, Index n, double* __restrict sum) {
    for (Index j = 0; j < n; ++j) sum[j] += static_cast<double>(part[j]);
  }

  const SparseStep& step_;
  std::vector<Index> used_;
  Index m_, tile_;
  std::vector<T> part_;
  std::vector<double> sum_;  // both class after class
};

// G[j, :] += sum_k rows[slots[k], j] delta[k, :] for j < n; rows are stride apart. Each G[j, r] is
// summed in the order of k by one thread: the result is the same for any number of threads.
template <class T>
void update_gradient(const T* rows, Index stride, const Index* slots, const SparseStep& step, Index n, Index m,
                     double* G, int n_threads) {
  const bool single = step.rows() == 1;
  const Index tile = single ? 4096 : gradient_tile<T>(m);
  const double flops = static_cast<double>(step.size()) * static_cast<double>(n);
  auto row_of = [&](Index s) { return rows + slots[step.row(s)] * stride; };
  parallel_tasks((n + tile - 1) / tile, worthwhile_threads(n_threads, flops), [&] {
    return [&, worker = GradientWorker<T>(step, m, single ? 0 : tile)](Index task) mutable {
      const Index begin = task * tile, end = std::min(begin + tile, n);
      if (single)
        add_one_row(row_of(0), begin, end, step.classes(0), step.values(0), step.count(0), m, G);
      else
        worker(row_of, begin, end, G);
    };
  });
}

}  // namespace multimargin
