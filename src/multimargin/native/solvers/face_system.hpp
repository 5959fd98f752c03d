// Newton's system over some variables of a small block, a few of each sample: over their steps d,
//
//     minimise  1/2 <d, K d> + 1/2 sum_i ridge_i |d_i|^2 - <right, d>   subject to   sum_r d_ir = 0 in every sample i,
//
// K block diagonal over classes. The last variable of each sample is minus the sum of the sample's others, which leaves
// a dense, positive definite matrix: its Cholesky factor gives d exactly, whatever the condition.
#pragma once

#include "base/lapack.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

class FaceSystem {
 public:
  struct Sample {
    Index i, first, count;  // its number; its variables
  };

  void clear() { samples_.clear(), class_.clear(); }

  // Adds the variables of a sample in some classes; the last one is eliminated.
  void add(Index i, const std::int32_t* classes, Index count) {
    samples_.push_back({i, std::ssize(class_), count});
    class_.insert(class_.end(), classes, classes + count);
  }

  const std::vector<Sample>& samples() const { return samples_; }
  Index variables() const { return std::ssize(class_); }
  Index unknowns() const { return std::ssize(class_) - std::ssize(samples_); }
  std::int32_t class_of(Index variable) const { return class_[variable]; }

  // In the time of a multiply-add: assembling and factoring.
  static Index work(Index unknowns) {
    const auto n = static_cast<double>(unknowns);
    return static_cast<Index>(kFactor * n * n * n + 1.5 * n * n) + 400;
  }

  // The steps of all variables, given ridge(i) and right(i, r); null if the matrix is not positive definite.
  template <class T, class Ridge, class Right>
  const double* solve(const Subproblem<T>& b, Ridge ridge, Right right) {
    const Index n = unknowns();
    H_.resize(n * n), right_.resize(n), step_.assign(class_.size(), 0.0);
    list_free();
    for (Index a = 0; a < n; ++a) {
      const Index i = sample_[a];
      double* column = H_.data() + a * n;
      right_[a] = right(i, of_class_[a]) - right(i, last_[a]);
      assemble(b.K + i * b.K_stride, sample_.data(), of_class_.data(), last_.data(), a, n, column);
      column[a] += ridge(i);
      for (Index c = a; c < n && sample_[c] == i; ++c) column[c] += ridge(i);
    }
    lapack::require();
    if (!lapack::factor(H_.data(), n)) return nullptr;
    lapack::solve(H_.data(), n, right_.data());
    for (Index a = 0; a < n; ++a) step_[place_[a]] = right_[a];
    for (const auto& [i, first, count] : samples_)
      for (Index k = first; k + 1 < first + count; ++k) step_[first + count - 1] -= step_[k];
    return step_.data();
  }

 private:
  static constexpr double kFactor = 0.03;  // time of a multiply-add of LAPACK

  // The variables that are not eliminated: their samples and classes, those of the eliminated ones, and where they are.
  void list_free() {
    for (auto* list : {&sample_, &of_class_, &last_, &place_}) list->clear();
    for (const auto& [i, first, count] : samples_)
      for (Index k = first; k + 1 < first + count; ++k) {
        sample_.push_back(static_cast<std::int32_t>(i));
        of_class_.push_back(class_[k]);
        last_.push_back(class_[first + count - 1]);
        place_.push_back(static_cast<std::int32_t>(k));
      }
  }

  // The part below the diagonal of a free variable's column, given the kernel row of its sample.
  template <class T>
  static MULTIMARGIN_CLONES void assemble(const T* row, const std::int32_t* sample, const std::int32_t* of_class,
                                          const std::int32_t* last, Index a, Index n, double* __restrict column) {
    const std::int32_t r = of_class[a], s = last[a];
    for (Index c = a; c < n; ++c) {
      const int weight = (r == of_class[c]) - (r == last[c]) - (s == of_class[c]) + (s == last[c]);
      column[c] = weight * to_stored<double>(row[sample[c]]);
    }
  }

  std::vector<Sample> samples_;
  std::vector<std::int32_t> class_;  // of the variables, sample after sample
  std::vector<std::int32_t> sample_, of_class_, last_, place_;  // of those that are not eliminated
  std::vector<double> H_, right_, step_;
};

}  // namespace multimargin::solvers
