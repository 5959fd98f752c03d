// Newton's direction for a proximal step of all samples, by pairs (sample, class):
//
//     (I + sum_i sigma_i P_i (x) f_i f_i') dU = -g,      U, g (p, m),   f_i the rows of F (n, p),
//
// where P_i is the identity on the free entries of row i or, if the entries of a row sum to zero (coupled), that minus
// their mean. With one unknown x_ir for each free entry, dU_r = -g_r + F_r' x_r, where F_r has the rows of the samples
// whose entry r is free, and
//
//     (F_r F_r' + diag(1 / sigma)) x_r + lambda = F_r g_r   for every class r,     sum_r x_ir = 0 if coupled, else lambda = 0.
//
// The matrix of each class is inverted by itself. The multipliers lambda, one for each sample with at least two free
// entries, solve one more system: its matrix is the sum of the classes' inverses.
#pragma once

#include "base/lapack.hpp"
#include "base/reduce.hpp"
#include "base/row_loops.hpp"

namespace multimargin::solvers {

struct NewtonSystem {
  Index n, p, m;
  const double* F;      // (n, p)
  const bool* face;     // (n, m), the free entries
  const double* sigma;  // (n,)
  const double* g;      // (p, m)
  bool coupled;
};

class NewtonPairs {
 public:
  explicit NewtonPairs(const NewtonSystem& system) : s_(system), classes_(system.m) {
    lapack::require();
    find_members();
  }

  // Writes the direction (p, m). False if rounding has made a matrix indefinite.
  bool solve(double* direction) {
    if (s_.coupled && !find_multipliers()) return false;
    std::vector<double> column(s_.p);
    for (Index r = 0; r < s_.m; ++r) {
      Class& c = classes_[r];
      if (!s_.coupled && !factor(c, r)) return false;
      const Index u = c.size();
      for (Index k = 0; s_.coupled && k < u; ++k) c.x[k] -= lambda_[c.samples[k]];
      lapack::solve(c.factor.data(), u, c.x.data());
      for (Index j = 0; j < s_.p; ++j) column[j] = -s_.g[j * s_.m + r];
      for (Index k = 0; k < u; ++k) add_scaled(c.rows.data() + k * s_.p, s_.p, c.x[k], column.data());
      for (Index j = 0; j < s_.p; ++j) direction[j * s_.m + r] = column[j];
      if (!s_.coupled) c = Class{};  // one class at a time needs memory
    }
    return true;
  }

 private:
  struct Class {
    std::vector<Index> members;         // samples whose entry is free, ascending
    std::vector<std::int32_t> samples;  // their places among the samples with free entries
    std::vector<double> rows, factor;   // F_r; the Cholesky factor of the class's matrix
    std::vector<double> x;              // F_r g_r, then the unknowns
    Index size() const { return std::ssize(members); }
  };

  // A row of which all free entries must keep their sum needs two of them to move.
  void find_members() {
    const Index least = s_.coupled ? 2 : 1;
    for (Index i = 0; i < s_.n; ++i) {
      const bool* free = s_.face + i * s_.m;
      if (std::count(free, free + s_.m, true) < least) continue;
      for (Index r = 0; r < s_.m; ++r)
        if (free[r]) {
          classes_[r].members.push_back(i);
          classes_[r].samples.push_back(static_cast<std::int32_t>(samples_));
        }
      ++samples_;
    }
  }

  // The class's rows, its right-hand side, and the factor of its matrix.
  bool factor(Class& c, Index r) {
    const Index u = c.size(), p = s_.p;
    std::vector<double> g(p);
    for (Index j = 0; j < p; ++j) g[j] = s_.g[j * s_.m + r];
    c.rows.resize(u * p), c.factor.resize(u * u), c.x.resize(u);
    for (Index k = 0; k < u; ++k) {
      double* row = c.rows.data() + k * p;
      std::copy_n(s_.F + c.members[k] * p, p, row);
      c.x[k] = dot(row, g.data(), p);
    }
    lapack::gram(c.rows.data(), u, p, c.factor.data());
    for (Index k = 0; k < u; ++k) c.factor[k * (u + 1)] += 1.0 / s_.sigma[c.members[k]];
    return lapack::factor(c.factor.data(), u);
  }

  bool find_multipliers() {
    std::vector<double> S(samples_ * samples_, 0.0), inverse, x;
    lambda_.assign(samples_, 0.0);
    for (Index r = 0; r < s_.m; ++r) {
      Class& c = classes_[r];
      const Index u = c.size();
      if (!factor(c, r)) return false;
      inverse = c.factor;
      if (!lapack::invert(inverse.data(), u)) return false;
      x = c.x;
      lapack::solve(c.factor.data(), u, x.data());
      for (Index k = 0; k < u; ++k) {
        double* column = S.data() + c.samples[k] * samples_;
        lambda_[c.samples[k]] += x[k];
        for (Index l = k; l < u; ++l) column[c.samples[l]] += inverse[k * u + l];  // below the diagonal: places ascend
      }
    }
    if (!lapack::factor(S.data(), samples_)) return false;
    lapack::solve(S.data(), samples_, lambda_.data());
    return true;
  }

  static MULTIMARGIN_CLONES double dot(const double* a, const double* b, Index n) {
    return sum_over(n, [=](Index k) { return a[k] * b[k]; });
  }

  NewtonSystem s_;
  std::vector<Class> classes_;
  Index samples_ = 0;           // with free entries
  std::vector<double> lambda_;  // one for each of them
};

}  // namespace multimargin::solvers
