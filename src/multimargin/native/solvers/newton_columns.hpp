// The matrix of Newton's system by columns, if the entries of a row sum to zero (newton_pairs.hpp has the system):
//
//     A = sum_i sigma_i P_i (x) f_i f_i',     P_i = I - 1 1' / k on the k free entries of row i.
//
// As I - 1 1' / k is the sum of (e_r - e_q) (e_r - e_q)' / k over the pairs of free entries, one product per pair of
// classes makes all blocks. If most entries are free and F has few columns, that is more work than one large product of
// the rows sqrt(sigma_i / k) (1 (x) f_i), which is subtracted, and a product per class for I.
#pragma once

#include "base/lapack.hpp"
#include "solvers/newton_pairs.hpp"

namespace multimargin::solvers {

class NewtonColumns {
 public:
  explicit NewtonColumns(const NewtonSystem& system) : s_(system), size_(system.m * system.p) {
    lapack::require();
    for_free_rows(s_.face, s_.n, s_.m, true, [&](Index, const bool*, Index count) {
      ++samples_, pairs_ += count * (count - 1) / 2;
    });
  }

  // Adds the half of A below the diagonal to a matrix of m p columns, which lie one after the other.
  void add_to(double* A) {
    if (work_as_rows() < work_by_pairs())
      add_as_rows(A);
    else
      add_by_pairs(A);
  }

 private:
  static constexpr Index kRows = 256;  // multiplied at a time

  // In multiply-adds of a large product.
  Index work_as_rows() const { return samples_ * size_ * size_ / 2; }
  Index work_by_pairs() const { return pairs_ * (kPair + kPairRow * s_.p + s_.p * s_.p); }
  static constexpr Index kPair = 160, kPairRow = 10;  // of one sample and two classes: lists, a copied row

  // One row of m p numbers for each sample, most of them zero unless its entries are free in most classes.
  void add_as_rows(double* A) {
    const Index p = s_.p;
    Products whole(size_), own(p);
    for_free_rows(s_.face, s_.n, s_.m, true, [&](Index i, const bool* free, Index count) {
      double* row = whole.next(s_.sigma[i] / static_cast<double>(count));
      for (Index r = 0; r < s_.m; ++r) whole.scaled(s_.F + i * p, free[r] ? p : 0, row + r * p);
    });
    whole.finish();
    for (Index j = 0; j < size_; ++j)
      for (Index i = j; i < size_; ++i) A[j * size_ + i] -= whole.at(i, j);
    for (Index r = 0; r < s_.m; ++r) {
      own.clear();
      for_free_rows(s_.face, s_.n, s_.m, true, [&](Index i, const bool* free, Index) {
        if (free[r]) own.scaled(s_.F + i * p, p, own.next(s_.sigma[i]));
      });
      own.finish();
      for (Index j = 0; j < p; ++j)
        for (Index i = j; i < p; ++i) A[(r * p + j) * size_ + r * p + i] += own.at(i, j);
    }
  }

  // One product for each pair of classes, of the samples that are free in both.
  void add_by_pairs(double* A) {
    struct Sample {
      Index i;
      double factor;  // sigma / k
    };
    const Index p = s_.p;
    std::vector<std::vector<Sample>> shared(s_.m * s_.m);  // of classes r > q
    for_free_rows(s_.face, s_.n, s_.m, true, [&](Index i, const bool* free, Index count) {
      const double factor = s_.sigma[i] / static_cast<double>(count);
      for (Index r = 1; r < s_.m; ++r)
        for (Index q = 0; free[r] && q < r; ++q)
          if (free[q]) shared[r * s_.m + q].push_back({i, factor});
    });
    Products product(p);
    for (Index r = 1; r < s_.m; ++r)
      for (Index q = 0; q < r; ++q) {
        if (shared[r * s_.m + q].empty()) continue;
        product.clear();
        for (const auto& [i, factor] : shared[r * s_.m + q]) product.scaled(s_.F + i * p, p, product.next(factor));
        product.finish();
        for (Index j = 0; j < p; ++j)
          for (Index i = j; i < p; ++i) {
            const double value = product.at(i, j);
            A[(r * p + j) * size_ + r * p + i] += value;
            A[(q * p + j) * size_ + q * p + i] += value;
            A[(q * p + j) * size_ + r * p + i] -= value;
            if (i > j) A[(q * p + i) * size_ + r * p + j] -= value;
          }
      }
  }

  // The sum of factor row row' over rows that are given one after the other, below the diagonal.
  class Products {
   public:
    explicit Products(Index width) : width_(width), rows_(kRows * width), sum_(width * width) {}

    // Where the next row is written by scaled(); the rest of it is zero.
    double* next(double factor) {
      if (count_ == kRows) finish();
      root_ = std::sqrt(factor);
      double* row = rows_.data() + count_++ * width_;
      std::fill_n(row, width_, 0.0);
      return row;
    }
    void scaled(const double* from, Index count, double* to) const {
      for (Index j = 0; j < count; ++j) to[j] = root_ * from[j];
    }
    void finish() {
      if (count_ > 0) lapack::add_outer(rows_.data(), count_, width_, sum_.data());
      count_ = 0;
    }
    void clear() { std::fill(sum_.begin(), sum_.end(), 0.0); }
    double at(Index i, Index j) const { return sum_[j * width_ + i]; }

   private:
    Index width_, count_ = 0;
    double root_ = 0.0;
    std::vector<double> rows_, sum_;
  };

  NewtonSystem s_;
  Index size_, samples_ = 0, pairs_ = 0;  // rows with free entries; pairs of free entries in a row
};

}  // namespace multimargin::solvers
