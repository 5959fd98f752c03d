// Scores of samples, scores_j = sum_i K(sv_i, x_j) coef_i. The kernel matrix is never stored: each strip of x goes
// through all support vectors, tile after tile. They serve prediction and proofs, and the gradient of a fit that keeps
// no kernel rows.
#pragma once

#include "base/lanes.hpp"
#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

// The non-zeros of the coefficients: most support vectors have only a few. They are listed by chunks of rows, and in a
// chunk class by class, so that the sums of a class stay in registers.
class SparseCoefficients {
 public:
  struct Entry {
    Index row;  // in its chunk
    double value;
  };
  struct Run {  // the entries of one class in one chunk
    Index r;
    const Entry *begin, *end;
  };

  SparseCoefficients(const double* coef, Index n, Index m, Index chunk_rows) : chunk_rows_(chunk_rows) {
    std::vector<std::size_t> ends;
    for (Index first = 0; first < n; first += chunk_rows) {
      for (Index r = 0; r < m; ++r) {
        const std::size_t before = entries_.size();
        for (Index i = first; i < std::min(first + chunk_rows, n); ++i)
          if (coef[i * m + r] != 0) entries_.push_back({i - first, coef[i * m + r]});
        if (entries_.size() == before) continue;
        runs_.push_back({r, nullptr, nullptr});
        ends.push_back(entries_.size());
      }
      chunks_.push_back(runs_.size());
    }
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      runs_[k].begin = entries_.data() + (k == 0 ? 0 : ends[k - 1]);
      runs_[k].end = entries_.data() + ends[k];
    }
  }
  SparseCoefficients(const SparseCoefficients&) = delete;
  SparseCoefficients& operator=(const SparseCoefficients&) = delete;

  // The runs of the chunk that begins with row `first`.
  const Run* begin(Index first) const { return runs_.data() + (first == 0 ? 0 : chunks_[first / chunk_rows_ - 1]); }
  const Run* end(Index first) const { return runs_.data() + chunks_[first / chunk_rows_]; }

 private:
  Index chunk_rows_;
  std::vector<Entry> entries_;
  std::vector<Run> runs_;
  std::vector<std::size_t> chunks_;  // where the runs of each chunk end
};

// Columns summed at a time: m such lines stay in the first-level cache.
inline constexpr Index kScoreColumns = tile_alignment;
inline constexpr Index kStripsPerThread = 4;

// totals[r * kScoreColumns + l] += sum over the entries of the runs, of class r, of value * values[row * ld + l],
// l < kScoreColumns; the sums of a run are of type Sum.
template <class Sum, class T>
MULTIMARGIN_CLONES void add_scores(const SparseCoefficients::Run* run, const SparseCoefficients::Run* end,
                                   const T* values, Index ld, double* totals) {
  constexpr Index lanes = Lanes<Sum>::count, registers = 4;  // sums that stay in registers
  for (; run != end; ++run)
    for (Index first = 0; first < kScoreColumns; first += registers * lanes) {
      Lanes<Sum> sums[registers] = {};
      for (const auto* entry = run->begin; entry != run->end; ++entry) {
        const T* row = values + entry->row * ld + first;
        const Sum c = static_cast<Sum>(entry->value);
        for (int k = 0; k < registers; ++k) sums[k].add_product(c, row + k * lanes);
      }
      for (int k = 0; k < registers; ++k) sums[k].add_to(totals + run->r * kScoreColumns + first + k * lanes);
    }
}

// How exact scores are: as exact as the samples allow, or good enough to find the next step.
enum class ScorePrecision { exact, steady, fast };

// Types of kernel values and of sums over some rows. Sums of all rows are double.
//     exact    kernel values of integers in double, others in the precision of their raw values; sums in double
//     steady   kernel values in float, unless raw values are double; sums in double
//     fast     both in float, unless raw values are double
template <class Raw, ScorePrecision precision>
struct ScoreTypes {
  static constexpr bool is_double = std::is_same_v<Raw, double>;
  static constexpr bool is_single = precision != ScorePrecision::exact && !is_double;
  using Exact = std::conditional_t<std::is_integral_v<Raw>, double, Raw>;
  using Value = std::conditional_t<is_single, float, Exact>;
  using Sum = std::conditional_t<precision == ScorePrecision::fast && !is_double, float, double>;
};

// One thread's summing of strips of x.
template <class Raw, ScorePrecision precision>
class ScoreWorker {
 public:
  // ids: all rows of the support vectors. Tiles have `shape`.
  ScoreWorker(const KernelOperands& operands, const SparseCoefficients& coef, const std::vector<Index>& ids, Index m,
              TileShape shape)
      : tiles_(operands), coef_(coef), ids_(ids), m_(m), shape_(shape) {}

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
        add_tile(first, from, std::min(from + shape_.columns, end), sums_.data() + (from - begin) * m_);
    }
    for (Index j = 0; j < end - begin; ++j)
      store(begin + j, sums_.data() + j / kScoreColumns * m_ * kScoreColumns + j % kScoreColumns);
  }

 private:
  using Value = typename ScoreTypes<Raw, precision>::Value;
  using Sum = typename ScoreTypes<Raw, precision>::Sum;

  // Adds the loaded support vectors, the first of which is number `first`, to the sums of columns from..to-1.
  void add_tile(Index first, Index from, Index to, double* sums) {
    const Value* values = tiles_.evaluate(from, to);
    for (Index column = 0; column < to - from; column += kScoreColumns)
      add_scores<Sum>(coef_.begin(first), coef_.end(first), values + column, tiles_.row_stride(), sums + column * m_);
  }

  KernelTiles<Raw, Value> tiles_;
  const SparseCoefficients& coef_;
  const std::vector<Index>& ids_;
  Index m_;
  TileShape shape_;  // its columns are a multiple of kScoreColumns
  std::vector<double> sums_;
};

template <class Raw, ScorePrecision precision, class Store>
void kernel_scores_as(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end, Store store,
                      int n_threads) {
  const Index n_sv = operands.a.n(), width = end - begin;
  std::vector<Index> ids(n_sv);
  std::iota(ids.begin(), ids.end(), Index{0});
  TileShape shape = operands.b.tile_shape(n_sv, width, false);
  const Index room = std::max<Index>((Index{1} << 18) / (m * kScoreColumns), 1) * kScoreColumns;  // sums of 2 MB
  shape.columns = std::min(round_up(shape.columns, kScoreColumns), room);
  const SparseCoefficients nonzeros(coef, n_sv, m, shape.rows);
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

// The rows of a gradient that belong to the rows of x: G[ids[j]] = base[ids[j]] + K(x_j, sv) coef.
struct GradientRows {
  double* G;           // (n, m)
  const double* base;  // (n, m)
  const Index* ids;
};

// `steady` sums are in double.
inline void kernel_gradient(const KernelOperands& operands, const double* coef, Index m, GradientRows rows, bool steady,
                            int n_threads) {
  auto store = [=](Index j, const double* sums) {
    const Index first = rows.ids[j] * m;
    for (Index r = 0; r < m; ++r) rows.G[first + r] = rows.base[first + r] + sums[r * kScoreColumns];
  };
  const Index n = operands.b.n();
  if (steady)
    for_scores<ScorePrecision::steady>(operands, coef, m, 0, n, store, n_threads);
  else
    for_scores<ScorePrecision::fast>(operands, coef, m, 0, n, store, n_threads);
}

}  // namespace multimargin::kernel
