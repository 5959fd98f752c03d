// The gradient after a step: G += K_W' delta, using that a row of delta has few non-zero classes.
#pragma once

#include <algorithm>
#include <vector>

#include "platform.hpp"

namespace multimargin {

// acc[classes[c] * stride + j] += values[c] * row[j] for all c and j: a class-major accumulator, so
// that every class is one contiguous multiply-add. Two classes at a time share the reading of row.
template <class T>
MULTIMARGIN_CLONES void add_scaled_row(const T* __restrict row, Index n, const Index* classes, const double* values,
                                       Index count, double* acc, Index stride) {
  Index c = 0;
  for (; c + 2 <= count; c += 2) {
    double* __restrict first = acc + classes[c] * stride;
    double* __restrict second = acc + classes[c + 1] * stride;
    const double a = values[c], b = values[c + 1];
    for (Index j = 0; j < n; ++j) {
      const double k = static_cast<double>(row[j]);
      first[j] += a * k;
      second[j] += b * k;
    }
  }
  if (c < count) {
    double* __restrict last = acc + classes[c] * stride;
    const double a = values[c];
    for (Index j = 0; j < n; ++j) last[j] += a * static_cast<double>(row[j]);
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

// Columns of K taken together, so that the accumulator stays in the second level cache.
inline Index gradient_tile(Index m) {
  constexpr Index cache = 1 << 18;
  return std::clamp<Index>(cache / (8 * m) / 16 * 16, 64, 2048);
}

// G[j, :] += sum_k rows[slots[k], j] delta[k, :] for j < n; rows are stride apart. Each G[j, r] is
// summed in the order of k by one thread: the result is the same for any number of threads.
template <class T>
void update_gradient(const T* rows, Index stride, const Index* slots, const SparseStep& step, Index n, Index m,
                     double* G, int n_threads) {
  const bool single = step.rows() == 1;
  const Index tile = single ? 4096 : gradient_tile(m);
  const std::vector<Index> used = step.used_classes();
  const double flops = static_cast<double>(step.size()) * static_cast<double>(n);
  auto row_of = [&](Index s) { return rows + slots[step.row(s)] * stride; };
  parallel_tasks((n + tile - 1) / tile, worthwhile_threads(n_threads, flops), [&] {
    return [&, acc = std::vector<double>(single ? 0 : static_cast<std::size_t>(m * tile))](Index task) mutable {
      const Index begin = task * tile, end = std::min(begin + tile, n);
      if (single) return add_one_row(row_of(0), begin, end, step.classes(0), step.values(0), step.count(0), m, G);
      for (Index r : used) std::fill_n(acc.begin() + r * tile, end - begin, 0.0);
      for (Index s = 0; s < step.rows(); ++s)
        add_scaled_row(row_of(s) + begin, end - begin, step.classes(s), step.values(s), step.count(s), acc.data(),
                       tile);
      for (Index j = begin; j < end; ++j)
        for (Index r : used) G[j * m + r] += acc[static_cast<std::size_t>(r * tile + j - begin)];
    };
  });
}

}  // namespace multimargin
