// Newton's direction for a proximal step of all samples, by pairs (sample, class):
//
//     (I + sum_i sigma_i P_i (x) f_i f_i') dU = -g,      U, g (p, m),   f_i the rows of F (n, p),
//
// where P_i is the identity on the free entries of row i or, if the entries of a row sum to zero (coupled), that minus
// their mean. With one unknown x_ir for each free entry, dU_r = -g_r + F_r' x_r, where F_r has the rows of the samples
// whose entry r is free, and
//
//     (F_r F_r' + diag(1 / sigma)) x_r + lambda = F_r g_r   for every class r,
//     sum_r x_ir = 0 if coupled, else lambda = 0.
//
// The matrix of each class is inverted by itself. The multipliers lambda, one for each sample with at least two free
// entries, solve one more system: its matrix is the sum of the classes' inverses.
#pragma once

#include "base/aligned_buffer.hpp"
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

// Calls visit(i, free entries, their number) for the rows of a face (n, m) that can move: a row whose free entries must
// keep their sum needs two of them.
template <class Visit>
void for_free_rows(const bool* face, Index n, Index m, bool coupled, Visit visit) {
  const Index least = coupled ? 2 : 1;
  for (Index i = 0; i < n; ++i, face += m) {
    Index count = 0;
    for (Index r = 0; r < m; ++r) count += face[r];
    if (count >= least) visit(i, face, count);
  }
}

// What decides about the form of the system: free entries of each class, sum of the squares of those of each row, rows.
inline void face_sizes(const bool* face, Index n, Index m, bool coupled, double* sizes) {
  std::fill_n(sizes, m + 2, 0.0);
  for_free_rows(face, n, m, coupled, [&](Index, const bool* free, Index count) {
    for (Index r = 0; r < m; ++r) sizes[r] += free[r];
    sizes[m] += static_cast<double>(count * count);
    sizes[m + 1] += 1.0;
  });
}

// One step's matrices are as large as the last one's, and touching fresh memory takes as long as their arithmetic: the
// object is kept from step to step.
class NewtonPairs {
 public:
  // Writes the direction (p, m). False if rounding has made a matrix indefinite.
  bool solve(const NewtonSystem& system, double* direction) {
    lapack::require();
    find_members(system);
    if (system.coupled && !find_multipliers(system)) return false;
    const Index p = system.p, m = system.m;
    column_.resize(p);
    for (Index r = 0; r < m; ++r) {
      Class& c = classes_[r];
      const Index u = c.size();
      double *rows = rows_.data(), *matrix = matrices_.data();
      if (system.coupled) {
        rows += c.first * p, matrix += c.place;
      } else if (!factor(system, r, rows, matrix)) {
        return false;
      }
      for (Index k = 0; system.coupled && k < u; ++k) c.x[k] -= lambda_[c.samples[k]];
      lapack::solve(matrix, u, c.x.data());
      for (Index j = 0; j < p; ++j) column_[j] = -system.g[j * m + r];
      for (Index k = 0; k < u; ++k) add_scaled(rows + k * p, p, c.x[k], column_.data());
      for (Index j = 0; j < p; ++j) direction[j * m + r] = column_[j];
    }
    return true;
  }

 private:
  struct Class {
    std::vector<Index> members;         // samples whose entry is free, ascending
    std::vector<std::int32_t> samples;  // their places among the samples with free entries
    std::vector<double> x;              // F_r g_r, then the unknowns
    Index first, place;                 // where F_r and the class's matrix are, if those of all classes are kept
    Index size() const { return std::ssize(members); }
  };

  void find_members(const NewtonSystem& s) {
    classes_.resize(s.m);
    for (Class& c : classes_) c.members.clear(), c.samples.clear();
    samples_ = 0;
    for_free_rows(s.face, s.n, s.m, s.coupled, [&](Index i, const bool* free, Index) {
      for (Index r = 0; r < s.m; ++r)
        if (free[r]) {
          classes_[r].members.push_back(i);
          classes_[r].samples.push_back(static_cast<std::int32_t>(samples_));
        }
      ++samples_;
    });
    Index rows = 0, entries = 0, most = 0;
    for (Class& c : classes_) {
      c.first = rows, c.place = entries;
      rows += c.size(), entries += c.size() * c.size(), most = std::max(most, c.size());
    }
    rows_.reserve((s.coupled ? rows : most) * s.p);
    matrices_.reserve(s.coupled ? entries : most * most);
    if (s.coupled) inverse_.reserve(most * most);
  }

  // Writes the class's rows and the factor of its matrix; x becomes its right-hand side.
  bool factor(const NewtonSystem& s, Index r, double* rows, double* matrix) {
    Class& c = classes_[r];
    const Index u = c.size(), p = s.p;
    column_.resize(p), c.x.resize(u);
    for (Index j = 0; j < p; ++j) column_[j] = s.g[j * s.m + r];
    for (Index k = 0; k < u; ++k) {
      std::copy_n(s.F + c.members[k] * p, p, rows + k * p);
      c.x[k] = dot(rows + k * p, column_.data(), p);
    }
    lapack::gram(rows, u, p, matrix);
    for (Index k = 0; k < u; ++k) matrix[k * (u + 1)] += 1.0 / s.sigma[c.members[k]];
    return lapack::factor(matrix, u);
  }

  bool find_multipliers(const NewtonSystem& s) {
    std::fill_n(sum_.reserve(samples_ * samples_), samples_ * samples_, 0.0);
    lambda_.assign(samples_, 0.0);
    for (Index r = 0; r < s.m; ++r) {
      Class& c = classes_[r];
      const Index u = c.size();
      double *matrix = matrices_.data() + c.place, *inverse = inverse_.data();
      if (!factor(s, r, rows_.data() + c.first * s.p, matrix)) return false;
      std::copy_n(matrix, u * u, inverse);
      if (!lapack::invert(inverse, u)) return false;
      column_ = c.x;
      lapack::solve(matrix, u, column_.data());
      for (Index k = 0; k < u; ++k) {
        double* column = sum_.data() + c.samples[k] * samples_;
        lambda_[c.samples[k]] += column_[k];
        for (Index l = k; l < u; ++l) column[c.samples[l]] += inverse[k * u + l];  // below the diagonal: places ascend
      }
    }
    if (!lapack::factor(sum_.data(), samples_)) return false;
    lapack::solve(sum_.data(), samples_, lambda_.data());
    return true;
  }

  static MULTIMARGIN_CLONES double dot(const double* a, const double* b, Index n) {
    return sum_over(n, [=](Index k) { return a[k] * b[k]; });
  }

  std::vector<Class> classes_;
  Index samples_ = 0;  // with free entries
  // Rows F_r and factors of the classes' matrices, an inverse, the sum of all inverses.
  AlignedBuffer<double> rows_, matrices_, inverse_, sum_;
  std::vector<double> lambda_;  // one for each sample with free entries
  std::vector<double> column_;  // of g, of the direction, or of one class's unknowns
};

}  // namespace multimargin::solvers
