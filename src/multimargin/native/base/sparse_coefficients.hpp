// Sums over kernel rows with sparse coefficients: scores and gradients, sum_i coef_ir K_ij for every class r.
#pragma once

#include "base/lanes.hpp"

namespace multimargin::inline base {

// The non-zeros of the coefficients: most rows have only a few. They are listed by chunks of rows, and in a chunk class
// by class, so that the sums of a class stay in registers.
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

  // A chunk has at most kMostSummed rows: that bounds the rounding errors of its sums.
  static constexpr Index kMostSummed = 256;

  SparseCoefficients(const double* coef, Index n, Index m, Index chunk_rows)
      : n_(n), chunk_rows_(chunk_rows), used_(m, 0) {
    if (chunk_rows > kMostSummed) throw std::length_error("a chunk of coefficients has too many rows");
    std::vector<std::size_t> ends;
    for (Index first = 0; first < n; first += chunk_rows) {
      for (Index r = 0; r < m; ++r) {
        const std::size_t before = entries_.size();
        for (Index i = first; i < std::min(first + chunk_rows, n); ++i)
          if (coef[i * m + r] != 0) entries_.push_back({i - first, coef[i * m + r]});
        if (entries_.size() == before) continue;
        used_[r] = 1;
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

  Index rows() const { return n_; }
  Index size() const { return static_cast<Index>(entries_.size()); }

  // The runs of the chunk that begins with row `first`.
  const Run* begin(Index first) const { return runs_.data() + (first == 0 ? 0 : chunks_[first / chunk_rows_ - 1]); }
  const Run* end(Index first) const { return runs_.data() + chunks_[first / chunk_rows_]; }

  // All classes that occur, ascending.
  std::vector<Index> used_classes() const {
    std::vector<Index> result;
    for (std::size_t r = 0; r < used_.size(); ++r)
      if (used_[r]) result.push_back(static_cast<Index>(r));
    return result;
  }

 private:
  Index n_, chunk_rows_;
  std::vector<Entry> entries_;
  std::vector<Run> runs_;
  std::vector<std::size_t> chunks_;  // where the runs of each chunk end
  std::vector<char> used_;           // whether a class occurs
};

// Columns summed at a time: m such lines stay in the first-level cache.
inline constexpr Index kSumColumns = 64;

// The rows of a chunk, `stride` values apart.
template <class T>
struct TileRows {
  const T* values;
  Index stride;
  MULTIMARGIN_INLINE const T* operator()(Index k) const { return values + k * stride; }
};

// The rows of a chunk wherever they are, from column `begin` on.
template <class T>
struct ScatteredRows {
  const T* const* rows;
  Index begin;
  MULTIMARGIN_INLINE const T* operator()(Index k) const { return rows[k] + begin; }
};

// totals[r * kSumColumns + l] += sum over the entries of the runs, of class r, of value * row_of(row)[l],
// l < kSumColumns; the sums of a run are of type Sum. Fixed-point numbers count as integers.
template <class Sum, class RowOf>
MULTIMARGIN_CLONES void add_sums(const SparseCoefficients::Run* run, const SparseCoefficients::Run* end, RowOf row_of,
                                 double* totals) {
  constexpr Index lanes = Lanes<Sum>::count, registers = 4;  // sums that stay in registers
  for (; run != end; ++run)
    for (Index first = 0; first < kSumColumns; first += registers * lanes) {
      Lanes<Sum> sums[registers] = {};
      for (const auto* entry = run->begin; entry != run->end; ++entry) {
        const auto* row = row_of(entry->row) + first;
        const Sum c = static_cast<Sum>(entry->value);
        for (int k = 0; k < registers; ++k) sums[k].add_product(c, row + k * lanes);
      }
      for (int k = 0; k < registers; ++k) sums[k].add_to(totals + run->r * kSumColumns + first + k * lanes);
    }
}

}  // namespace multimargin::base
