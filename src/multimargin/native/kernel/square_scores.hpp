// Scores of samples against themselves, s_j = sum_i K(x_i, x_j) coef_i: those of the support vectors in a proof. K is
// symmetric, so that a tile of it serves twice: with the coefficients of its rows, and transposed with those of its
// columns.
#pragma once

#include "kernel/kernel_scores.hpp"

namespace multimargin::kernel {

inline constexpr Index kSquareTile = 2 * kSumColumns;  // rows and columns of a tile

// out[j * stride + i] = in[i * ld + j] for i, j < kSquareTile, by small squares, whose lines stay in the first-level
// cache.
template <class T>
MULTIMARGIN_CLONES void transpose_tile(const T* __restrict in, Index ld, T* __restrict out) {
  constexpr Index side = 8;
  for (Index i = 0; i < kSquareTile; i += side)
    for (Index j = 0; j < kSquareTile; j += side)
      for (Index k = 0; k < side; ++k)
        for (Index l = 0; l < side; ++l) out[(j + k) * kSquareTile + i + l] = in[(i + l) * ld + j + k];
}

// The sums of one range of columns with all rows up to its end.
template <class Raw>
class SquareWorker {
 public:
  using Value = typename ScoreTypes<Raw, ScorePrecision::exact>::Value;

  SquareWorker(const KernelOperands& operands, const SparseCoefficients& coef, const std::vector<Index>& ids, Index m)
      : tiles_(operands), coef_(coef), ids_(ids), m_(m), tile_(kSquareTile * kSquareTile),
        transposed_(kSquareTile * kSquareTile) {}

  // sums [block of kSumColumns samples][class][sample] += what the pairs (i, j), begin <= j < end, i <= j give both.
  // begin is a multiple of kSquareTile.
  void operator()(Index begin, Index end, double* sums) {
    for (Index first = 0; first < end; first += kSquareTile) {
      const Index q = std::min(kSquareTile, static_cast<Index>(ids_.size()) - first);
      tiles_.load(ids_.data() + first, q);
      for (Index from = std::max(first, begin); from < end; from += kSquareTile)
        add_tile(first, q, from, std::min(from + kSquareTile, end), sums);
    }
  }

 private:
  void add_tile(Index first, Index q, Index from, Index to, double* sums) {
    const Value* values = tiles_.evaluate(from, to);
    const Index ld = tiles_.row_stride();
    for (Index column = 0; column < to - from; column += kSumColumns)
      add(first, values + column, ld, from + column, sums);
    if (from == first) return;  // both directions are in the tile
    if (ld < kSquareTile) {     // the last columns
      for (Index k = 0; k < q; ++k) std::copy_n(values + k * ld, ld, tile_.data() + k * kSquareTile);
      values = tile_.data();
    }
    transpose_tile(values, std::max(ld, kSquareTile), transposed_.data());
    for (Index column = 0; column < q; column += kSumColumns)
      add(from, transposed_.data() + column, kSquareTile, first + column, sums);
  }

  // The rows of `values` are the samples from `row` on; the columns are the block of samples from `column` on.
  void add(Index row, const Value* values, Index ld, Index column, double* sums) {
    add_sums<double>(coef_.begin(row), coef_.end(row), TileRows<Value>{values, ld}, sums + column * m_);
  }

  KernelTiles<Raw, Value> tiles_;
  const SparseCoefficients& coef_;
  const std::vector<Index>& ids_;
  Index m_;
  std::vector<Value> tile_, transposed_;  // with zeros after the last column
};

// Adds to scores (n, m) what the pairs (i, j) of rows of operands.a, i <= j and begin <= j < end, give both of their
// samples; operands.b are the same samples. begin is a multiple of kSquareTile. Each thread has a range of columns and
// sums of its own, so that the result depends on the number of threads alone.
template <class Raw>
void square_scores_as(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end,
                      double* scores, int n_threads) {
  const Index n = operands.a.n(), blocks = (end + kSumColumns - 1) / kSumColumns;
  std::vector<Index> ids(n);
  std::iota(ids.begin(), ids.end(), Index{0});
  const SparseCoefficients nonzeros(coef, n, m, kSquareTile);
  const double flops = operands.b.value_flops(operands.a) * static_cast<double>(end) * static_cast<double>(end - begin);
  const int threads = worthwhile_threads(n_threads, flops);
  operands.b.pack(threads);
  // Column j has j + 1 pairs: ranges with as many pairs each.
  auto boundary = [=](Index k) {
    const double low = static_cast<double>(begin) * static_cast<double>(begin);
    const double high = static_cast<double>(end) * static_cast<double>(end);
    const double at = std::sqrt(low + (high - low) * static_cast<double>(k) / threads);
    return k == threads ? end : std::clamp(round_up(static_cast<Index>(at), kSquareTile), begin, end);
  };
  std::vector<std::vector<double>> sums(threads);
  parallel_tasks(threads, threads, [&] {
    return [&](Index part) {
      sums[part].assign(blocks * kSumColumns * m, 0.0);
      SquareWorker<Raw>(operands, nonzeros, ids, m)(boundary(part), boundary(part + 1), sums[part].data());
    };
  });
  parallel_ranges(end, kSumColumns, threads, [&](Index first, Index last) {
    for (const auto& part : sums)
      for (Index r = 0; r < m; ++r)
        for (Index j = first; j < last; ++j) scores[j * m + r] += part[first * m + r * kSumColumns + (j - first)];
  });
}

inline void square_scores(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end,
                          double* scores, int n_threads) {
  if (begin == end || m == 0) return;
  with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
    square_scores_as<Raw>(operands, coef, m, begin, end, scores, n_threads);
  });
}

}  // namespace multimargin::kernel
