// Scores of samples, scores_j = sum_i K(sv_i, x_j) coef_i. The kernel matrix is never stored: each strip of x goes
// through all support vectors, tile after tile. They serve prediction and proofs, and the gradient of a fit that keeps
// no kernel rows.
#pragma once

#include "base/sparse_coefficients.hpp"
#include "kernel/kernel_block.hpp"

namespace multimargin::kernel {

inline constexpr Index kStripsPerThread = 4;

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

  // Calls store(j, scores) for begin <= j < end: the score of class r is scores[r * kSumColumns]. Support vectors are
  // loaded once per strip, which costs as much as dozens of kernel values.
  template <class Store>
  void operator()(Index begin, Index end, Store store) {
    const Index blocks = (end - begin + kSumColumns - 1) / kSumColumns, n_sv = static_cast<Index>(ids_.size());
    sums_.assign(blocks * m_ * kSumColumns, 0.0);
    for (Index first = 0; first < n_sv; first += shape_.rows) {
      const Index q = std::min(shape_.rows, n_sv - first);
      tiles_.load(ids_.data() + first, q);
      for (Index from = begin; from < end; from += shape_.columns)
        add_tile(first, from, std::min(from + shape_.columns, end), sums_.data() + (from - begin) * m_);
    }
    for (Index j = 0; j < end - begin; ++j)
      store(begin + j, sums_.data() + j / kSumColumns * m_ * kSumColumns + j % kSumColumns);
  }

 private:
  using Value = typename ScoreTypes<Raw, precision>::Value;
  using Sum = typename ScoreTypes<Raw, precision>::Sum;

  // Adds the loaded support vectors, the first of which is number `first`, to the sums of columns from..to-1.
  void add_tile(Index first, Index from, Index to, double* sums) {
    const Value* values = tiles_.evaluate(from, to);
    for (Index column = 0; column < to - from; column += kSumColumns)
      add_sums<Sum>(coef_.begin(first), coef_.end(first), TileRows<Value>{values + column, tiles_.row_stride()},
                    sums + column * m_);
  }

  KernelTiles<Raw, Value> tiles_;
  const SparseCoefficients& coef_;
  const std::vector<Index>& ids_;
  Index m_;
  TileShape shape_;  // its columns are a multiple of kSumColumns
  std::vector<double> sums_;
};

template <class Raw, ScorePrecision precision, class Store>
void kernel_scores_as(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end, Store store,
                      int n_threads) {
  const Index n_sv = operands.a.n(), width = end - begin;
  std::vector<Index> ids(n_sv);
  std::iota(ids.begin(), ids.end(), Index{0});
  TileShape shape = operands.b.tile_shape(n_sv, width, false);
  const Index room = std::max<Index>((Index{1} << 18) / (m * kSumColumns), 1) * kSumColumns;  // sums of 2 MB
  shape.columns = std::min(round_up(shape.columns, kSumColumns), room);
  const SparseCoefficients nonzeros(coef, n_sv, m, shape.rows);
  // A strip has whole tiles, and there are some strips per thread, so that threads end together.
  const Index share = n_threads > 1 ? width / (kStripsPerThread * n_threads) + 1 : width;
  const Index columns = std::min(room / shape.columns * shape.columns, round_up(share, shape.columns));
  const double flops = operands.b.value_flops(operands.a) * static_cast<double>(n_sv) * static_cast<double>(width);
  operands.b.pack(n_threads);
  parallel_tasks((width + columns - 1) / columns, worthwhile_threads(n_threads, flops), [&] {
    return [&, worker = ScoreWorker<Raw, precision>(operands, nonzeros, ids, m, shape)](Index strip) mutable {
      const Index from = begin + strip * columns;
      worker(from, std::min(from + columns, end), store);
    };
  });
}

// Calls store(j, scores), in any order, for the rows begin <= j < end of x: the scores K(x_j, sv) coef of class r are
// scores[r * kSumColumns]. operands.a are the support vectors, operands.b is x.
template <ScorePrecision precision, class Store>
void for_scores(const KernelOperands& operands, const double* coef, Index m, Index begin, Index end, Store store,
                int n_threads) {
  if (begin == end || m == 0) return;
  if (operands.a.n() == 0) {
    const std::vector<double> zeros(m * kSumColumns, 0.0);
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
    for (Index r = 0; r < m; ++r) scores[(j - begin) * m + r] = sums[r * kSumColumns];
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
    for (Index r = 0; r < m; ++r) rows.G[first + r] = rows.base[first + r] + sums[r * kSumColumns];
  };
  const Index n = operands.b.n();
  if (steady)
    for_scores<ScorePrecision::steady>(operands, coef, m, 0, n, store, n_threads);
  else
    for_scores<ScorePrecision::fast>(operands, coef, m, 0, n, store, n_threads);
}

// Which pairs (sample, class) of a gradient are to be computed: due[j * m + r] for the samples begin <= j < end.
struct DuePairs {
  const bool* due;
  Index begin, end;
};

// The gradient of single pairs: G[j, r] = base[j, r] + sum_i K(x_i, x_j) (alpha_ir - start_ir). Every class has its own
// samples, those with alpha_ir != start_ir, so it computes its own kernel values, strip by strip on threads.
template <ScorePrecision precision>
void pair_gradient(const KernelSpec& spec, const Samples& samples, const double* alpha, const double* start, Index m,
                   DuePairs pairs, const double* base, double* G, int n_threads) {
  constexpr Index strip = 1024;  // pairs of a task
  struct Task {
    Index r, begin, end;
  };
  std::vector<std::vector<Index>> support(m), due(m);
  std::vector<std::vector<double>> values(m);
  for (Index i = 0; i < samples.n(); ++i)
    for (Index r = 0; r < m; ++r)
      if (const double change = alpha[i * m + r] - start[i * m + r]; change != 0.0)
        support[r].push_back(i), values[r].push_back(change);
  for (Index j = pairs.begin; j < pairs.end; ++j)
    for (Index r = 0; r < m; ++r)
      if (pairs.due[j * m + r]) due[r].push_back(j);
  std::vector<Task> tasks;
  double flops = 0.0;
  for (Index r = 0; r < m; ++r) {
    const Index size = std::ssize(due[r]);
    for (Index first = 0; first < size; first += strip) tasks.push_back({r, first, std::min(first + strip, size)});
    flops += samples.value_flops(samples) * static_cast<double>(size) * static_cast<double>(support[r].size());
  }
  parallel_tasks(std::ssize(tasks), worthwhile_threads(n_threads, flops), [&] {
    return [&](Index task) {
      const auto [of_class, begin, end] = tasks[task];
      const Index r = of_class;  // Clang before version 16 cannot capture what a declaration takes apart
      const Index* rows = due[r].data() + begin;
      const auto sv = samples.take(support[r].data(), std::ssize(support[r]));
      const auto x = samples.take(rows, end - begin);
      auto store = [&, r](Index j, const double* sum) { G[rows[j] * m + r] = base[rows[j] * m + r] + sum[0]; };
      for_scores<precision>({spec, *sv, *x}, values[r].data(), 1, 0, end - begin, store, 1);
    };
  });
}

}  // namespace multimargin::kernel
