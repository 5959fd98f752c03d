// The gradient after a step: G += K_W' delta. If rows of delta have few non-zero classes, class by class; if they have
// most of them, as a product of matrices.
#pragma once

#include "base/aligned_buffer.hpp"
#include "base/blas.hpp"

namespace multimargin::state {

// acc[classes[c] * stride + j] += values[c] * row[j] for all c and j: a class-major accumulator, so that every class is
// one contiguous multiply-add. Two classes at a time share the reading of row. `next`, the row to follow, is
// prefetched.
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

// sum[j] += part[j].
template <class T>
MULTIMARGIN_CLONES void add_to_sum(const T* __restrict part, Index n, double* __restrict sum) {
  for (Index j = 0; j < n; ++j) sum[j] += static_cast<double>(part[j]);
}

// The non-zero entries of the rows of a step, row after row; rows of zeros are left out.
class SparseStep {
 public:
  SparseStep(const double* delta, Index k, Index m) : used_(m, 0) {
    for (Index i = 0; i < k; ++i) {
      for (Index r = 0; r < m; ++r)
        if (delta[i * m + r] != 0.0) {
          classes_.push_back(r);
          values_.push_back(delta[i * m + r]);
          used_[r] = 1;
        }
      if (size() > begin_.back()) {
        begin_.push_back(size());
        rows_.push_back(i);
      }
    }
  }

  Index rows() const { return static_cast<Index>(rows_.size()); }
  Index row(Index s) const { return rows_[s]; }  // its number in delta
  Index size() const { return static_cast<Index>(values_.size()); }
  Index count(Index s) const { return begin_[s + 1] - begin_[s]; }
  const Index* classes(Index s) const { return classes_.data() + begin_[s]; }
  const double* values(Index s) const { return values_.data() + begin_[s]; }

  // Whether a product of matrices is faster: if there are many values, and most entries of rows times classes are not
  // 0.
  bool is_dense() const {
    constexpr Index least_values = 256;
    return size() >= least_values && 2 * size() > rows() * static_cast<Index>(used_classes().size());
  }

  // The rows as a matrix (rows, classes), given the classes that occur.
  template <class T>
  std::vector<T> to_matrix(const std::vector<Index>& used) const {
    std::vector<std::size_t> at(used_.size());
    for (std::size_t c = 0; c < used.size(); ++c) at[used[c]] = c;
    std::vector<T> matrix(rows() * used.size());
    for (Index s = 0; s < rows(); ++s)
      for (Index c = 0; c < count(s); ++c) matrix[s * used.size() + at[classes(s)[c]]] = static_cast<T>(values(s)[c]);
    return matrix;
  }

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

// Columns of K taken together, so that the sums of all classes stay in the first-level cache.
template <class T>
Index gradient_tile(Index m) {
  constexpr Index cache = 24 << 10;
  return std::clamp<Index>(cache / (static_cast<Index>(sizeof(T)) * m) / 16 * 16, 64, 8192);
}

// One thread's share of G += K' delta: tiles of columns, each summed over all rows. Sums over a batch of rows are in
// the precision of the rows; sums of batches are in double.
template <class T>
class GradientWorker {
 public:
  GradientWorker(const SparseStep& step, Index m, Index tile)
      : step_(step), used_(step.used_classes()), m_(m), tile_(tile), part_(m * tile), sum_(m * tile) {}

  // row_of(s) is the kernel row of the step's s-th row; columns begin..end-1.
  template <class RowOf>
  void operator()(RowOf row_of, Index begin, Index end, double* G) {
    constexpr Index batch = 64;
    const Index width = end - begin, rows = step_.rows();
    for (Index r : used_) std::fill_n(sum_.data() + r * tile_, width, 0.0);
    for (Index first = 0; first < rows; first += batch) {
      for (Index r : used_) std::fill_n(part_.data() + r * tile_, width, T(0));
      for (Index s = first; s < std::min(first + batch, rows); ++s)
        add_scaled_row(row_of(s) + begin, width, step_.classes(s), step_.values(s), step_.count(s), part_.data(), tile_,
                       row_of(std::min(s + 1, rows - 1)) + begin);
      for (Index r : used_) add_to_sum(part_.data() + r * tile_, width, sum_.data() + r * tile_);
    }
    for (Index j = 0; j < width; ++j)
      for (Index r : used_) G[(begin + j) * m_ + r] += sum_[r * tile_ + j];
  }

 private:
  const SparseStep& step_;
  std::vector<Index> used_;
  Index m_, tile_;
  std::vector<T> part_;
  std::vector<double> sum_;  // both class after class
};

// The same for a step with most classes in most rows: tiles of columns, each a product with the step as a matrix. A
// batch of rows is copied into one panel for it.
template <class T>
class DenseGradientWorker {
 public:
  static constexpr Index kBatch = 64, kTile = 256;  // rows, columns

  DenseGradientWorker(const std::vector<Index>& used, const T* step, Index rows, Index m)
      : used_(used), step_(step), rows_(rows), m_(m), sum_(used.size() * kTile) {}

  template <class RowOf>
  void operator()(RowOf row_of, Index begin, Index end, double* G) {
    const Index width = end - begin, u = static_cast<Index>(used_.size());
    T *panel = panel_.reserve(kBatch * kTile), *part = part_.reserve(u * kTile);
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (Index first = 0; first < rows_; first += kBatch) {
      const Index count = std::min(kBatch, rows_ - first);
      for (Index s = 0; s < count; ++s) std::copy_n(row_of(first + s) + begin, width, panel + s * kTile);
      blas::gemm<T>(true, false, u, width, count, T(1), step_ + first * u, u, panel, kTile, T(0), part, kTile);
      for (Index c = 0; c < u; ++c) add_to_sum(part + c * kTile, width, sum_.data() + c * kTile);
    }
    for (Index j = 0; j < width; ++j)
      for (Index c = 0; c < u; ++c) G[(begin + j) * m_ + used_[c]] += sum_[c * kTile + j];
  }

 private:
  const std::vector<Index>& used_;
  const T* step_;  // (rows, classes that occur)
  Index rows_, m_;
  AlignedBuffer<T> panel_, part_;
  std::vector<double> sum_;  // class after class
};

template <class T, class RowOf>
void update_gradient_dense(RowOf row_of, const SparseStep& step, Index n, Index m, double* G, int n_threads) {
  using Worker = DenseGradientWorker<T>;
  blas::require<T>();
  const std::vector<Index> used = step.used_classes();
  const std::vector<T> matrix = step.to_matrix<T>(used);
  parallel_tasks((n + Worker::kTile - 1) / Worker::kTile, n_threads, [&] {
    return [&, worker = std::make_unique<Worker>(used, matrix.data(), step.rows(), m)](Index task) {
      (*worker)(row_of, task* Worker::kTile, std::min((task + 1) * Worker::kTile, n), G);
    };
  });
}

// G[j, :] += sum_k rows[slots[k], j] delta[k, :] for j < n; rows are stride apart. One thread sums each G[j, r] in the
// order of k, so the result does not depend on the number of threads.
template <class T>
void update_gradient(const T* rows, Index stride, const Index* slots, const SparseStep& step, Index n, Index m,
                     double* G, int n_threads) {
  const bool single = step.rows() == 1;
  const Index tile = single ? 4096 : gradient_tile<T>(m);
  const double flops = static_cast<double>(step.size()) * static_cast<double>(n);
  auto row_of = [&](Index s) { return rows + slots[step.row(s)] * stride; };
  if (!single && step.is_dense())
    return update_gradient_dense<T>(row_of, step, n, m, G, worthwhile_threads(n_threads, flops));
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

}  // namespace multimargin::state
