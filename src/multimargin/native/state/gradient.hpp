// The gradient after a step: G += K_W' delta. Rows of delta have few non-zero classes, or nearly all of them.
#pragma once

#include "base/dense_coefficients.hpp"
#include "base/row_loops.hpp"
#include "base/sparse_coefficients.hpp"

namespace multimargin::state {

// One row of K: G[j, :] += row[j] delta, in place.
template <class T>
MULTIMARGIN_CLONES void add_one_row(const T* row, Index begin, Index end, const double* delta, Index m, double* G) {
  for (Index j = begin; j < end; ++j) {
    const double k = kStoredUnit<T> * stored_value<double>(row[j]);
    for (Index r = 0; r < m; ++r) G[j * m + r] += k * delta[r];
  }
}

// The type of sums over a chunk of rows: single precision unless rows are double.
template <class T>
using ChunkSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline constexpr Index kChunk = 128;  // rows: their values of kSumColumns columns stay in the first-level cache

// One thread's share of G += K' delta: kSumColumns columns at a time, each summed over all rows. Sums of chunks are in
// double. Step is SparseCoefficients or DenseCoefficients.
template <class T, class Step>
class GradientWorker {
 public:
  GradientWorker(const Step& step, const std::vector<const T*>& rows, Index m)
      : step_(step), rows_(rows), used_(step.used_classes()), m_(m),
        totals_((m + DenseCoefficients<Sum>::kTogether) * kSumColumns) {}

  // Columns begin..end-1, at most kSumColumns. Values of the columns from `next` on are fetched for the next call.
  void operator()(Index begin, Index end, Index next, double* G) {
    for (Index r : used_) std::fill_n(totals_.data() + r * kSumColumns, kSumColumns, 0.0);
    for (Index first = 0; first < step_.rows(); first += kChunk) {
      const Index count = std::min(kChunk, step_.rows() - first);
      for (Index k = 0; k < count; ++k)
        for (Index j = next; j < next + kSumColumns; j += 64 / static_cast<Index>(sizeof(T)))
          MULTIMARGIN_PREFETCH(rows_[first + k] + j);
      add_chunk(first, count, begin, end);
    }
    for (Index j = begin; j < end; ++j)
      for (Index r : used_) G[j * m_ + r] += kStoredUnit<T> * totals_[r * kSumColumns + j - begin];
  }

 private:
  using Sum = ChunkSum<T>;

  void add_chunk(Index first, Index count, Index begin, Index end) {
    if (end - begin == kSumColumns) return add(first, count, ScatteredRows<T>{rows_.data() + first, begin});
    padded_.assign(count * kSumColumns, T{});
    for (Index k = 0; k < count; ++k)
      std::copy(rows_[first + k] + begin, rows_[first + k] + end, padded_.data() + k * kSumColumns);
    add(first, count, TileRows<T>{padded_.data(), kSumColumns});
  }

  template <class RowOf>
  void add(Index first, Index count, RowOf row_of) {
    if constexpr (std::is_same_v<Step, SparseCoefficients>)
      add_sums<Sum>(step_.begin(first), step_.end(first), row_of, totals_.data());
    else
      add_dense_sums<Sum>(step_.row(first), step_.stride(), count, m_, row_of, totals_.data());
  }

  const Step& step_;
  const std::vector<const T*>& rows_;
  std::vector<Index> used_;
  Index m_;
  std::vector<double> totals_;  // class after class
  std::vector<T> padded_;       // rows of the last columns
};

// G[j, :] += sum_k rows[slots[k], j] delta[k, :] for j < n and k < count; rows are stride apart. One thread sums each
// G[j, r] in the order of k, so the result does not depend on the number of threads. Returns the multiply-adds.
template <class T>
Index update_gradient(const T* rows, Index stride, const Index* slots, const double* delta, Index count, Index n,
                      Index m, double* G, int n_threads) {
  constexpr Index range = 4 * kSumColumns;
  if (count == 1) {
    parallel_ranges(n, 4096, worthwhile_threads(n_threads, static_cast<double>(n * m)), [&](Index begin, Index end) {
      add_one_row(rows + slots[0] * stride, begin, end, delta, m, G);
    });
    return n * m;
  }
  std::vector<const T*> first(count);
  for (Index k = 0; k < count; ++k) first[k] = rows + slots[k] * stride;
  const auto update = [&]<class Step>(const Step& step) {
    if (step.size() == 0) return Index{0};
    const int threads = worthwhile_threads(n_threads, static_cast<double>(step.size()) * static_cast<double>(n));
    parallel_tasks((n + range - 1) / range, threads, [&] {
      return [&, worker = GradientWorker<T, Step>(step, first, m)](Index task) mutable {
        const Index end = std::min((task + 1) * range, n);
        for (Index j = task * range; j < end; j += kSumColumns) {
          const Index to = std::min(j + kSumColumns, end);
          worker(j, to, std::max<Index>(std::min(to, n - kSumColumns), 0), G);
        }
      };
    });
    return step.size() * n;
  };
  using Dense = DenseCoefficients<ChunkSum<T>>;
  if (Dense::fit(delta, count, m)) return update(Dense(delta, count, m));
  return update(SparseCoefficients(delta, count, m, kChunk));
}

}  // namespace multimargin::state
