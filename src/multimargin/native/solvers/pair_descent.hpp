// Descent by pairs of samples (SMO) for one bounded coefficient per sample and a fixed sum: the block of the binary
// machine.
//
//     minimise  1/2 <Delta, K Delta> + <G_old, Delta>  over  Delta = alpha - alpha_old,
//     low_i <= alpha_i <= high_i,  sum_i alpha_i as it was,
//
// by second-order pairs (Fan, Chen & Lin 2005, WSS 2). With up = {alpha_i < high_i}, lower = {alpha_j > low_j}:
//
//     i = argmin_up G,   j = argmax over lower with b = G_j - G_i > 0 of b^2 / a,   a = K_ii + K_jj - 2 K_ij
//     alpha_i += t,  alpha_j -= t,  t = min(b / a, high_i - alpha_i, alpha_j - low_j)
//
// until max_lower G - min_up G <= 2 eps: then some bias leaves no violation above eps.
#pragma once

#include "base/aligned_buffer.hpp"
#include "base/interrupt.hpp"
#include "base/reduce.hpp"
#include "solvers/pair_rows.hpp"

namespace multimargin::solvers {

namespace pairs {

constexpr Index kTile = 256;  // columns whose extremes are found together; then one of them is searched

// The first k from `first` on with x_k = value, or -1: infinite kernel values may leave none. x is padded to a multiple
// of 32 values.
template <class T>
MULTIMARGIN_CLONES Index first_equal(const T* __restrict x, Index first, Index n, T value) {
  constexpr Index width = 32;
  for (; first < n; first += width) {
    int equal = 0;
#pragma omp simd reduction(| : equal)
    for (Index k = first; k < first + width; ++k) equal |= x[k] == value;
    if (equal) break;
  }
  while (first < n && x[first] != value) ++first;
  return first < n ? first : -1;
}

// The least gradient of up and the largest of lower, minus the reference value, and the tile of the least.
template <class T>
struct Extremes {
  T least, most;
  Index tile;
};

// G += t (a - b). Relative to `reference`, above = G for samples of up (which have up = 0) and infinity for others
// (up = infinity); below = G for samples of lower (low = 0) and -infinity for others (low = -infinity). The same pass
// finds the extremes of both.
template <class T>
MULTIMARGIN_CLONES Extremes<T> shift_gradient(Index n, const T* __restrict a, const T* __restrict b, double t,
                                              double reference, const T* __restrict up, const T* __restrict low,
                                              double* __restrict G, T* __restrict above, T* __restrict below) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  Extremes<T> found{infinity, -infinity, 0};
  for (Index first = 0; first < n; first += kTile) {
    const Index last = first + kTile < n ? first + kTile : n;
    T least = infinity, most = -infinity;
#pragma omp simd reduction(min : least) reduction(max : most)
    for (Index k = first; k < last; ++k) {
      const double value = G[k] + t * (static_cast<double>(a[k]) - static_cast<double>(b[k]));
      G[k] = value;
      const T relative = static_cast<T>(value - reference), u = relative + up[k], l = relative + low[k];
      above[k] = u;
      below[k] = l;
      least = u < least ? u : least;
      most = l > most ? l : most;
    }
    if (least < found.least) {
      found.least = least;
      found.tile = first;
    }
    found.most = most > found.most ? most : found.most;
  }
  return found;
}

// score_k = b_k^2 / a_k if b_k = below_k - own > 0, else 0, with a_k = kii + diag_k - 2 row_k, at least tiny. Returns
// the first k of the largest score, or -1 if all are 0.
template <class T>
MULTIMARGIN_CLONES Index best_partner(Index n, const T* __restrict row, const T* __restrict diag,
                                      const T* __restrict below, T own, T kii, T tiny, T* __restrict score) {
  T best = 0;
  Index tile = -1;
  for (Index first = 0; first < n; first += kTile) {
    const Index last = first + kTile < n ? first + kTile : n;
    T most = 0;
#pragma omp simd reduction(max : most)
    for (Index k = first; k < last; ++k) {
      const T difference = below[k] - own, b = difference > 0 ? difference : T(0);
      const T curvature = (kii + diag[k]) - 2 * row[k], a = curvature > tiny ? curvature : tiny;
      const T value = b * b / a;
      score[k] = value;
      most = value > most ? value : most;
    }
    if (most > best) {
      best = most;
      tile = first;
    }
  }
  return tile < 0 ? -1 : first_equal(score, tile, n, best);
}

}  // namespace pairs

struct PairResult {
  Index steps;
  double violation;
  Index work;  // in the time of a multiply-add
};

// Solves the block in place. alpha and G belong together even if an interrupt leaves run() half way.
template <class T>
class PairDescent {
 public:
  PairDescent(Index q, PairRows<T>& rows, const double* diag, const double* low, const double* high, double* G,
              double* alpha, double seconds)
      : q_(q), rows_(rows), diag_(diag), low_(low), high_(high), G_(G), alpha_(alpha), interrupt_(seconds) {
    const Index stride = (q + 31) / 32 * 32;  // first_equal reads 32 values at a time
    up_ = search_.reserve(6 * stride);
    lower_ = up_ + stride;
    above_ = lower_ + stride;
    below_ = above_ + stride;
    diagonal_ = below_ + stride;
    score_ = diagonal_ + stride;
    std::fill_n(up_, 6 * stride, T(0));
    double largest = 0.0;
    for (Index k = 0; k < q; ++k) {
      diagonal_[k] = static_cast<T>(diag[k]);
      largest = std::max(largest, diag[k]);
      mark(k);
    }
    tiny_ = static_cast<T>(std::max(kTiny * largest, kTiniest));
  }

  // Until the violation is at most eps, max_iter steps or most_work were made, the time is over, or no step changes G
  // any more.
  PairResult run(double eps, Index max_iter, Index most_work) {
    PairResult result{0, 0.0, 0};
    if (q_ == 0) return result;
    reference_ = G_[0];
    pairs::Extremes<T> found = search(score_, score_, 0.0);
    while (result.steps < max_iter && result.work < most_work && !interrupt_.late()) {
      // Searches run in the precision of K, relative to `reference`; the pair they find is checked in double.
      if (!(static_cast<double>(found.most) - static_cast<double>(found.least) > 2 * eps)) break;
      const Index i = pairs::first_equal(above_, found.tile, q_, found.least);
      if (i < 0) break;
      const T* row_i = row(i, i, found, result.work);
      const Index j = pairs::best_partner(q_, row_i, diagonal_, below_, found.least, diagonal_[i], tiny_, score_);
      if (j < 0 || !(G_[j] > G_[i])) break;
      const T* row_j = row(j, i, found, result.work);
      const double before = G_[j] - G_[i];
      const double t = step(i, j, static_cast<double>(row_i[j]));
      reference_ = G_[i];
      found = search(row_i, row_j, t);
      ++result.steps;
      result.work += kWorkOfStep + kPasses * q_;
      interrupt_.poll(kPasses * q_);
      if (before == G_[j] - G_[i] && is_free(i) && is_free(j)) break;
    }
    const double width = static_cast<double>(found.most) - static_cast<double>(found.least);
    result.violation = width < 0.0 ? 0.0 : 0.5 * width;
    return result;
  }

 private:
  static constexpr Index kPasses = 3, kWorkOfStep = 300, kWorkOfCopy = 4, kWorkOfValue = 10;  // in multiply-adds
  static constexpr Index kRowsAtOnce = 4, kListed = 64;
  static_assert(kRowsAtOnce < PairRows<float>::kLeastRoom);
  static constexpr double kTiny = 1e-12, kTiniest = 1e-30;

  // Notes for the searches whether sample k may go up or down.
  void mark(Index k) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    up_[k] = alpha_[k] < high_[k] ? T(0) : infinity;
    lower_[k] = alpha_[k] > low_[k] ? T(0) : -infinity;
  }

  bool is_free(Index k) const { return low_[k] < alpha_[k] && alpha_[k] < high_[k]; }

  pairs::Extremes<T> search(const T* a, const T* b, double t) {
    return pairs::shift_gradient(q_, a, b, t, reference_, up_, lower_, G_, above_, below_);
  }

  // The kernel row of sample k; that of `pinned` is not replaced. If it has to be computed, some rows of the worst
  // violators are computed with it.
  const T* row(Index k, Index pinned, const pairs::Extremes<T>& found, Index& work) {
    if (rows_.is_there(k)) return rows_.at(k);
    if (rows_.is_stored(k)) {
      rows_.copy(k, pinned);
      work += kWorkOfCopy * q_;
      return rows_.at(k);
    }
    list_violators(k, (found.least + found.most) / 2);
    rows_.compute(which_, pinned);
    const Index spent = kWorkOfValue * static_cast<Index>(which_.size()) * q_;
    work += spent;
    interrupt_.poll(spent);
    return rows_.at(k);
  }

  // Sets which_ to sample k and some of the worst violators without rows. The list of those is renewed when it is used
  // up; listed samples that violate far less by now are left out.
  void list_violators(Index k, T middle) {
    if (listed_.empty()) list_absent(middle);
    which_.assign(1, k);
    while (!listed_.empty() && static_cast<Index>(which_.size()) < kRowsAtOnce) {
      const auto [pull, c] = listed_.back();
      listed_.pop_back();
      if (c != k && is_nowhere(c) && 2 * pull_of(c, middle) > pull) which_.push_back(c);
    }
  }

  // Lists the kListed worst violators without rows, the worst last.
  void list_absent(T middle) {
    for (Index c = 0; c < q_; ++c) {
      const T pull = pull_of(c, middle);
      if (pull > 0 && is_nowhere(c)) listed_.push_back({pull, c});
    }
    if (static_cast<Index>(listed_.size()) > kListed) {
      std::nth_element(listed_.begin(), listed_.begin() + kListed, listed_.end(), std::greater<>());
      listed_.resize(kListed);
    }
    std::sort(listed_.begin(), listed_.end());
  }

  T pull_of(Index c, T middle) const { return std::max(middle - above_[c], below_[c] - middle); }
  bool is_nowhere(Index c) const { return !rows_.is_there(c) && !rows_.is_stored(c); }

  // Moves the pair; returns how far. A coefficient that reaches its bound is set to it exactly.
  double step(Index i, Index j, double kij) {
    const double a = std::max(diag_[i] + diag_[j] - 2 * kij, static_cast<double>(tiny_));
    const double room_i = high_[i] - alpha_[i], room_j = alpha_[j] - low_[j];
    const double t = std::min((G_[j] - G_[i]) / a, std::min(room_i, room_j));
    alpha_[i] = t == room_i ? high_[i] : alpha_[i] + t;
    alpha_[j] = t == room_j ? low_[j] : alpha_[j] - t;
    mark(i);
    mark(j);
    return t;
  }

  Index q_;
  PairRows<T>& rows_;
  const double *diag_, *low_, *high_;
  double *G_, *alpha_;
  AlignedBuffer<T> search_;
  std::vector<std::pair<T, Index>> listed_;  // violation and number of samples without a row
  std::vector<Index> which_;
  T *up_, *lower_, *above_, *below_, *diagonal_, *score_;
  T tiny_ = 0;
  double reference_ = 0.0;
  Interrupt interrupt_;
};

}  // namespace multimargin::solvers
