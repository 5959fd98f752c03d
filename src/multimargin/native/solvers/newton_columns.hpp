// The matrix of Newton's system by columns, if the entries of a row sum to zero (newton_pairs.hpp has the system):
//
//     A = sum_i sigma_i P_i (x) f_i f_i',     P_i = I - 1 1' / k on the k free entries of row i.
//
// As I - 1 1' / k is the sum of (e_r - e_q) (e_r - e_q)' / k over the pairs of free entries, one product per pair of
// classes makes all blocks.
#pragma once

#include "base/lapack.hpp"
#include "solvers/newton_pairs.hpp"

namespace multimargin::solvers {

class NewtonColumns {
 public:
  explicit NewtonColumns(const NewtonSystem& system)
      : s_(system), pairs_(system.m * system.m), rows_(kRows * system.p), product_(system.p * system.p) {
    lapack::require();
    for_free_rows(s_.face, s_.n, s_.m, true, [&](Index i, const bool* free, Index count) {
      const double root = std::sqrt(s_.sigma[i] / static_cast<double>(count));
      for (Index r = 1; r < s_.m; ++r)
        for (Index q = 0; free[r] && q < r; ++q)
          if (free[q]) pairs_[r * s_.m + q].push_back({i, root});
    });
  }

  // Adds the half of A below the diagonal to a matrix of m p columns, which lie one after the other.
  void add_to(double* A) {
    const Index size = s_.m * s_.p;
    for (Index r = 1; r < s_.m; ++r)
      for (Index q = 0; q < r; ++q) {
        const auto& samples = pairs_[r * s_.m + q];
        if (samples.empty()) continue;
        multiply(samples);
        for (Index j = 0; j < s_.p; ++j)
          for (Index i = j; i < s_.p; ++i) {
            const double value = product_[j * s_.p + i];
            A[(r * s_.p + j) * size + r * s_.p + i] += value;
            A[(q * s_.p + j) * size + q * s_.p + i] += value;
            A[(q * s_.p + j) * size + r * s_.p + i] -= value;
            if (i > j) A[(q * s_.p + i) * size + r * s_.p + j] -= value;
          }
      }
  }

 private:
  struct Sample {
    Index i;
    double root;  // of its factor sigma / k
  };
  static constexpr Index kRows = 256;  // multiplied at a time

  // The product of some samples' rows, below the diagonal.
  void multiply(const std::vector<Sample>& samples) {
    std::fill(product_.begin(), product_.end(), 0.0);
    for (Index first = 0; first < std::ssize(samples); first += kRows) {
      const Index count = std::min(kRows, std::ssize(samples) - first);
      for (Index k = 0; k < count; ++k) {
        const Sample& sample = samples[first + k];
        for (Index j = 0; j < s_.p; ++j) rows_[k * s_.p + j] = sample.root * s_.F[sample.i * s_.p + j];
      }
      lapack::add_outer(rows_.data(), count, s_.p, product_.data());
    }
  }

  NewtonSystem s_;
  std::vector<std::vector<Sample>> pairs_;  // of classes r > q: the samples whose entries are free in both
  std::vector<double> rows_, product_;
};

}  // namespace multimargin::solvers
