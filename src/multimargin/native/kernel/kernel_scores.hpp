// Scores of new samples, scores_j = sum_i K(sv_i, x_j) coef_i. The kernel matrix is never stored: each strip of x goes
// through all support vectors, tile after tile.
#pragma once

#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

// The non-zeros of the coefficients, row by row: most support vectors have only a few.
struct SparseCoefficients {
  std::vector<Index> pointers;
  std::vector<Index> classes;
  std::vector<double> values;

  SparseCoefficients(const double* coef, Index n, Index m) {
    pointers.assign(1, 0);
    for (Index i = 0; i < n; ++i) {
      for (Index r = 0; r < m; ++r)
        if (coef[i * m + r] != 0) classes.push_back(r), values.push_back(coef[i * m + r]);
      pointers.push_back(static_cast<Index>(classes.size()));
    }
  }
};

// Columns summed at a time: m such lines stay in the first-level cache.
inline constexpr Index kScoreColumns = tile_alignment;
inline constexpr Index kStripsPerThread = 4;

// sums[r * kScoreColumns + l] += sum over rows k of coef(first + k, r) * values[k * ld + l], l < kScoreColumns.
template <class T>
MULTIMARGIN_CLONES void add_scores(const SparseCoefficients& coef, Index first, Index q, const T* values, Index ld,
                                   double* sums) {
  for (Index k = 0; k < q; ++k) {
    const T* row = values + k * ld;
    for (Index p = coef.pointers[first + k]; p < coef.pointers[first + k + 1]; ++p) {
      const double c = coef.values[p];
      double* sum = sums + coef.classes[p] * kScoreColumns;
#pragma omp simd
      for (Index l = 0; l < kScoreColumns; ++l) sum[l] += c * static_cast<double>(row[l]);
    }
  }
}

// One thread's summing of strips of x.
template <class Raw>
class ScoreWorker {
 public:
  // ids: all rows of the support vectors. Tiles have `shape`.
  ScoreWorker(const KernelOperands& operands, const SparseCoefficients& coef, const std::vector<Index>& ids, Index m,
              TileShape shape)
      : tiles_(operands), coef_(coef), ids_(ids), m_(m), shape_(shape) {}

  // scores[(j - begin) * m + r] for begin <= j < end. Support vectors are loaded once per strip, which costs as much as
  // dozens of kernel values.
  void operator()(Index begin, Index end, double* scores) {
    const Index blocks = (end - begin + kScoreColumns - 1) / kScoreColumns, n_sv = static_cast<Index>(ids_.size());
    sums_.assign(blocks * m_ * kScoreColumns, 0.0);
    for (Index first = 0; first < n_sv; first += shape_.rows) {
      const Index q = std::min(shape_.rows, n_sv - first);
      tiles_.load(ids_.data() + first, q);
      for (Index from = begin; from < end; from += shape_.columns)
        add_tile(first, q, from, std::min(from + shape_.columns, end), sums_.data() + (from - begin) * m_);
    }
    for (Index j = 0; j < end - begin; ++j) {
      const double* sum = sums_.data() + j / kScoreColumns * m_ * kScoreColumns + j % kScoreColumns;
      for (Index r = 0; r < m_; ++r) scores[j * m_ + r] = sum[r * kScoreColumns];
    }
  }

 private:
  // Adds the loaded support vectors, the first of which is number `first`, to the sums of columns from..to-1.
  void add_tile(Index first, Index q, Index from, Index to, double* sums) {
    const Value* values = tiles_.evaluate(from, to);
    for (Index column = 0; column < to - from; column += kScoreColumns)
      add_scores<Value>(coef_, first, q, values + column, tiles_.row_stride(), sums + column * m_);
  }

  // Kernel values of exact integers are computed in double, others in the precision of their raw values.
  using Value = std::conditional_t<std::is_integral_v<Raw>, double, Raw>;

  KernelTiles<Raw, Value> tiles_;
  const SparseCoefficients& coef_;
  const std::vector<Index>& ids_;
  Index m_;
  TileShape shape_;  // its columns are a multiple of kScoreColumns
  std::vector<double> sums_;
};

template <class Raw>
void kernel_scores_as(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end,
                      double* scores, int n_threads) {
  const Index n_sv = operands.a.n(), width = end - begin;
  const SparseCoefficients nonzeros(coef, n_sv, m);
  std::vector<Index> ids(n_sv);
  std::iota(ids.begin(), ids.end(), Index{0});
  TileShape shape = operands.b.tile_shape(n_sv, width, false);
  const Index room = std::max<Index>((Index{1} << 18) / (m * kScoreColumns), 1) * kScoreColumns;  // sums of 2 MB
  shape.columns = std::min(round_up(shape.columns, kScoreColumns), room);
  // A strip has whole tiles, and there are some strips per thread, so that threads end together.
  const Index share = n_threads > 1 ? width / (kStripsPerThread * n_threads) + 1 : width;
  const Index columns = std::min(room / shape.columns * shape.columns, round_up(share, shape.columns));
  const double flops = operands.b.value_flops(operands.a) * static_cast<double>(n_sv) * static_cast<double>(width);
  parallel_tasks((width + columns - 1) / columns, worthwhile_threads(n_threads, flops), [&] {
    return [&, worker = ScoreWorker<Raw>(operands, nonzeros, ids, m, shape)](Index strip) mutable {
      const Index from = begin + strip * columns;
      worker(from, std::min(from + columns, end), scores + (from - begin) * m);
    };
  });
}

// scores (end - begin) x m = K(x, sv) coef; operands.a are the support vectors, operands.b is x.
inline void kernel_scores(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end,
                          double* scores, int n_threads) {
  if (begin == end || m == 0) return;
  if (operands.a.n() == 0) {
    std::fill_n(scores, (end - begin) * m, 0.0);
  } else {
    with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
      kernel_scores_as<Raw>(operands, coef, m, begin, end, scores, n_threads);
    });
  }
}

}  // namespace multimargin::kernel
