// Sums over kernel rows with dense coefficients: sum_i coef_ir K_ij for every class r, if most rows have most classes.
//
// Three classes share the reading of a kernel value, and their sums over a chunk of rows stay in registers. One class
// at a time, as sparse_coefficients.hpp has it, takes 2.7 times as long if the values are in a cache.
#pragma once

#include "base/sparse_coefficients.hpp"

namespace multimargin::inline base {

// Coefficients in the precision of the sums, rows padded with zeros to a multiple of kTogether classes.
template <class Sum>
class DenseCoefficients {
 public:
  static constexpr Index kTogether = 3;

  DenseCoefficients(const double* coef, Index n, Index m)
      : n_(n), m_(m), stride_((m + kTogether - 1) / kTogether * kTogether), values_(n * stride_) {
    for (Index i = 0; i < n; ++i)
      for (Index r = 0; r < m; ++r) values_[i * stride_ + r] = static_cast<Sum>(coef[i * m + r]);
  }

  // Whether the coefficients are so dense that zeros among them cost less than a list of the others.
  static bool fit(const double* coef, Index n, Index m) {
    if (m < kTogether) return false;
    const auto zeros = static_cast<Index>(std::count(coef, coef + n * m, 0.0));
    return 4 * zeros < n * m;
  }

  Index rows() const { return n_; }
  Index size() const { return n_ * m_; }
  Index stride() const { return stride_; }
  const Sum* row(Index i) const { return values_.data() + i * stride_; }

  std::vector<Index> used_classes() const {
    std::vector<Index> all(m_);
    std::iota(all.begin(), all.end(), Index{0});
    return all;
  }

 private:
  Index n_, m_, stride_;
  std::vector<Sum> values_;
};

// totals[r * kSumColumns + l] += sum over `count` rows of coef[k * stride + r] * row_of(k)[l], l < kSumColumns, for all
// r < m; totals have room for `stride` classes.
template <class Sum, class RowOf>
MULTIMARGIN_CLONES void add_dense_sums(const Sum* coef, Index stride, Index count, Index m, RowOf row_of,
                                       double* totals) {
  constexpr Index lanes = Lanes<Sum>::count, registers = 2, together = DenseCoefficients<Sum>::kTogether;
  for (Index first = 0; first < kSumColumns; first += registers * lanes)
    for (Index r = 0; r < m; r += together) {
      Lanes<Sum> sums[together][registers] = {};
      for (Index k = 0; k < count; ++k) {
        const auto* row = row_of(k) + first;
        const Sum* c = coef + k * stride + r;
        for (Index s = 0; s < together; ++s)
          for (Index q = 0; q < registers; ++q) sums[s][q].add_product(c[s], row + q * lanes);
      }
      for (Index s = 0; s < together; ++s)
        for (Index q = 0; q < registers; ++q)
          sums[s][q].add_to(totals + (r + s) * kSumColumns + first + q * lanes);
    }
}

}  // namespace multimargin::base
