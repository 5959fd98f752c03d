// Scores of samples, scores_j = sum_i K(sv_i, x_j) coef_i. The kernel matrix is never stored: each strip of x goes
// through all support vectors, tile after tile. They serve prediction and proofs, and the gradient of a fit that keeps
// no kernel rows.
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
template <class T, class Sum>
MULTIMARGIN_CLONES void add_scores(const SparseCoefficients& coef, Index first, Index q, const T* values, Index ld,
                                   Sum* sums) {
  for (Index k = 0; k < q; ++k) {
    const T* row = values + k * ld;
    for (Index p = coef.pointers[first + k]; p < coef.pointers[first + k + 1]; ++p) {
      const Sum c = static_cast<Sum>(coef.values[p]);
      Sum* sum = sums + coef.classes[p] * kScoreColumns;
#pragma omp simd
      for (Index l = 0; l < kScoreColumns; ++l) sum[l] += c * static_cast<Sum>(row[l]);
    }
  }
}

// total[k] += part[k], part[k] = 0 for k < n.
template <class Sum>
MULTIMARGIN_CLONES void move_to_total(Sum* __restrict part, Index n, double* __restrict total) {
  for (Index k = 0; k < n; ++k) {
    total[k] += static_cast<double>(part[k]);
    part[k] = Sum(0);
  }
}

// How exact scores are: as exact as the samples allow, or good enough to find the next step.
enum class ScorePrecision { exact, fast };

// Types of kernel values and of sums over some rows. Sums of all rows are double.
//     exact    kernel values of integers in double, others in the precision of their raw values; sums in double
//     fast     both in float, unless raw values are double
template <class Raw, ScorePrecision precision>
struct ScoreTypes {
  static constexpr bool is_fast = precision == ScorePrecision::fast && !std::is_same_v<Raw, double>;
  using Exact = std::conditional_t<std::is_integral_v<Raw>, double, Raw>;
  using Value = std::conditional_t<is_fast, float, Exact>;
  using Sum = std::conditional_t<is_fast, float, double>;
};

// One thread's summing of strips of x.
template <class Raw, ScorePrecision precision>
class ScoreWorker {
 public:
  // ids: all rows of the support vectors. Tiles have `shape`.
  ScoreWorker(const KernelOperands& operands, const SparseCoefficients& coef, const std::vector<Index>& ids, Index m,
              TileShape shape)
      : tiles_(operands), coef_(coef), ids_(ids), m_(m), shape_(shape), part_(m * kScoreColumns, Sum(0)) {}

  // Calls store(j, scores) for begin <= j < end: the score of class r is scores[r * kScoreColumns]. Support vectors are
  // loaded once per strip, which costs as much as dozens of kernel values.
  template <class Store>
  void operator()(Index begin, Index end, Store store) {
    const Index blocks = (end - begin + kScoreColumns - 1) / kScoreColumns, n_sv = static_cast<Index>(ids_.size());
    sums_.assign(blocks * m_ * kScoreColumns, 0.0);
    for (Index first = 0; first < n_sv; first += shape_.rows) {
      const Index q = std::min(shape_.rows, n_sv - first);
      tiles_.load(ids_.data() + first, q);
      for (Index from = begin; from < end; from += shape_.columns)
        add_tile(first, q, from, std::min(from + shape_.columns, end), sums_.data() + (from - begin) * m_);
    }
    for (Index j = 0; j < end - begin; ++j)
      store(begin + j, sums_.data() + j / kScoreColumns * m_ * kScoreColumns + j % kScoreColumns);
  }

 private:
  using Value = typename ScoreTypes<Raw, precision>::Value;
  using Sum = typename ScoreTypes<Raw, precision>::Sum;

  // Adds the loaded support vectors, the first of which is number `first`, to the sums of columns from..to-1.
  void add_tile(Index first, Index q, Index from, Index to, double* sums) {
    const Value* values = tiles_.evaluate(from, to);
    for (Index column = 0; column < to - from; column += kScoreColumns) {
      double* totals = sums + column * m_;
      if constexpr (std::is_same_v<Sum, double>) {
        add_scores<Value>(coef_, first, q, values + column, tiles_.row_stride(), totals);
      } else {
        add_scores<Value>(coef_, first, q, values + column, tiles_.row_stride(), part_.data());
        move_to_total(part_.data(), m_ * kScoreColumns, totals);
      }
    }
  }

  KernelTiles<Raw, Value> tiles_;
  const SparseCoefficients& coef_;
  const std::vector<Index>& ids_;
  Index m_;
  TileShape shape_;  // its columns are a multiple of kScoreColumns
  std::vector<double> sums_;
  std::vector<Sum> part_;  // over the rows of one tile
};

template <class Raw, ScorePrecision precision, class Store>
void kernel_scores_as(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end, Store store,
                      int n_threads) {
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
    return [&, worker = ScoreWorker<Raw, precision>(operands, nonzeros, ids, m, shape)](Index strip) mutable {
      const Index from = begin + strip * columns;
      worker(from, std::min(from + columns, end), store);
    };
  });
}

// Calls store(j, scores), in any order, for the rows begin <= j < end of x: the scores K(x_j, sv) coef of class r are
// scores[r * kScoreColumns]. operands.a are the support vectors, operands.b is x.
template <ScorePrecision precision, class Store>
void for_scores(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end, Store store,
                int n_threads) {
  if (begin == end || m == 0) return;
  if (operands.a.n() == 0) {
    const std::vector<double> zeros(m * kScoreColumns, 0.0);
    for (Index j = begin; j < end; ++j) store(j, zeros.data());
  } else {
    with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
      kernel_scores_as<Raw, precision>(operands, coef, m, begin, end, store, n_threads);
    });
  }
}

// scores (end - begin) x m = K(x, sv) coef.
inline void kernel_scores(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end,
                          double* scores, int n_threads) {
  auto store = [=](Index j, const double* sums) {
    for (Index r = 0; r < m; ++r) scores[(j - begin) * m + r] = sums[r * kScoreColumns];
  };
  for_scores<ScorePrecision::exact>(operands, coef, m, begin, end, store, n_threads);
}

// The rows of a gradient that belong to the rows of x: G[ids[j]] = base[y[ids[j]]] + K(x_j, sv) coef.
struct GradientRows {
  double* G;  // (n, m)
  const Index* ids;
  const double* base;  // a row per label
  const std::int32_t* y;
};

inline void kernel_gradient(const KernelOperands& operands, const double* coef, Index m, GradientRows rows,
                            int n_threads) {
  auto store = [=](Index j, const double* sums) {
    const Index i = rows.ids[j];
    for (Index r = 0; r < m; ++r) rows.G[i * m + r] = rows.base[rows.y[i] * m + r] + sums[r * kScoreColumns];
  };
  for_scores<ScorePrecision::fast>(operands, coef, m, 0, operands.b.n(), store, n_threads);
}

}  // namespace multimargin::kernel
