// Points of a proximal model of all samples (engines/cpu/proximal_newton.py), and the search along a line of them.
//
// The model around alpha_k, with gradient G_k and lengths sigma_i, has the points
//
//     alpha(t) = P(alpha_k - sigma (G_k + F U + t F dU)),      P the projection on the feasible rows,
//
// and the slope of its dual function along dU is  <U, dU> + t |dU|^2 - <F dU, alpha(t) - alpha_k>,  which grows with t.
#pragma once

#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"

namespace multimargin::solvers {

using namespace machines;

struct ModelCentre {
  Index n, m;
  const double* alpha;    // (n, m)
  const double* G;        // (n, m)
  const double* sigma;    // (n,)
  const std::int32_t* y;  // (n,)
  const double* C;        // (n,)
};

template <class Machine>
class ModelLine {
 public:
  // FU and dFU are (n, m).
  ModelLine(const ModelCentre& centre, const double* FU, const double* dFU)
      : c_(centre), FU_(FU), dFU_(dFU), machine_(centre.m, Machine::find_update("sort"), 0),
        G_(kRows * centre.m), work_(2 * kTogether * centre.m) {}

  // Writes alpha(t) (n, m), and returns <F dU, alpha(t) - alpha_k>.
  double point(double t, double* alpha) {
    const Index m = c_.m;
    double product = 0.0;
    for (Index i = 0; i < c_.n; i += kRows) {
      const Index rows = std::min(kRows, c_.n - i), k = i * m;
      gradient(c_.G + k, FU_ + k, dFU_ + k, t, rows * m, G_.data());
      std::copy_n(c_.alpha + k, rows * m, alpha + k);
      project(i, rows, alpha + k);
      product += change(dFU_ + k, alpha + k, c_.alpha + k, rows * m);
    }
    return product;
  }

 private:
  static constexpr Index kTogether = kRowsTogether<Machine>, kRows = std::max<Index>(kTogether, 1);

  // Projects the rows from i on, whose gradients are in G_.
  void project(Index i, Index rows, double* alpha) {
    if constexpr (kTogether > 0)
      if (rows == kTogether) {
        Machine::project_together(G_.data(), c_.sigma + i, c_.y + i, c_.C + i, c_.m, alpha, work_.data());
        return;
      }
    for (Index l = 0; l < rows; ++l, alpha += c_.m)
      machine_.project(G_.data() + l * c_.m, c_.sigma[i + l], c_.y[i + l], c_.C[i + l], c_.m, alpha);
  }

  static MULTIMARGIN_CLONES void gradient(const double* G, const double* FU, const double* dFU, double t, Index count,
                                          double* __restrict out) {
    for (Index k = 0; k < count; ++k) out[k] = G[k] + FU[k] + t * dFU[k];
  }

  static MULTIMARGIN_CLONES double change(const double* dFU, const double* after, const double* before, Index count) {
    return sum_over(count, [=](Index k) { return dFU[k] * (after[k] - before[k]); });
  }

  ModelCentre c_;
  const double *FU_, *dFU_;
  Machine machine_;
  std::vector<double> G_, work_;  // of the rows that are projected together
};

// What the slope consists of beside the samples.
struct LineSlope {
  double first;    // at t = 0, negative
  double along;    // <U, dU>
  double squared;  // |dU|^2
};

// A root of the slope, to a tenth of what it is at t = 0. A trial that is too short is doubled, up to kLongest; between
// two of which one is too short and one too long, the next is where the line through their slopes has its root. If no
// sample was undecided, the direction has no scale, and trials are much shortened.
//
// value(t) is the part of the slope that the samples add: -<F dU, alpha(t) - alpha_k>.
template <class Value>
double find_root(const LineSlope& slope, Value value) {
  constexpr double kRoot = 0.1, kLongest = 4.0, kMiddle = 0.1, kMuchShorter = 0.02;
  constexpr int kTrials = 30, kFar = 3;
  double low = 0.0, at_low = slope.first, high = 0.0, at_high = 0.0, t = 1.0;
  for (int trial = 0;; ++trial) {
    const double here = slope.along + t * slope.squared + value(t);
    if (std::abs(here) <= kRoot * std::abs(slope.first) || trial == kTrials - 1) return t;
    if (here > 0.0) {
      high = t, at_high = here;
    } else {
      low = t, at_low = here;
    }
    if (high == 0.0) {
      if (t >= kLongest) return t;
      t *= 2.0;
    } else if (trial >= kFar && low == 0.0) {
      t *= kMuchShorter;
    } else {
      const double share = at_low / (at_low - at_high);
      t = low + (high - low) * std::min(std::max(share, kMiddle), 1.0 - kMiddle);
    }
  }
}

// out (p, m) = F' (alpha - before), F (n, p). Most entries of the difference are zero.
inline void multiply_back(const double* F, Index n, Index p, Index m, const double* alpha, const double* before,
                          double* out) {
  std::vector<double> sums(m * p, 0.0);
  for (Index i = 0; i < n; ++i)
    for (Index r = 0; r < m; ++r) {
      const double change = alpha[i * m + r] - before[i * m + r];
      if (change != 0.0) add_scaled(F + i * p, p, change, sums.data() + r * p);
    }
  for (Index j = 0; j < p; ++j)
    for (Index r = 0; r < m; ++r) out[j * m + r] = sums[r * p + j];
}

}  // namespace multimargin::solvers
