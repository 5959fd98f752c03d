// Descent by pairs for one coefficient a sample, bounded, with a fixed sum: the block of the binary machine.
//
//     minimise  1/2 <Delta, K Delta> + <G_old, Delta>  over  Delta = alpha - alpha_old,
//     low_i <= alpha_i <= high_i,  sum_i alpha_i as it was,
//
// by second-order pairs (Fan, Chen & Lin 2005, WSS 2). With up = {alpha_i < high_i}, lower = {alpha_j > low_j}:
//
//     i = argmin_up G,   j = argmax over lower with b = G_j - G_i > 0 of b^2 / a,   a = K_ii + K_jj - 2 K_ij
//     alpha_i += t,  alpha_j -= t,  t = min(b / a, high_i - alpha_i, alpha_j - low_j)
//
// until max_lower G - min_up G <= 2 eps: then one bias leaves no violation above eps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aligned_buffer.hpp"
#include "block.hpp"
#include "interrupt.hpp"
#include "reduce.hpp"

namespace multimargin {

namespace pairs {

constexpr Index kTile = 256;  // columns whose extremes are found together; then one of them is searched

// The first k of the tile that begins at `first` with x_k = value, which one of them has.
template <class T>
MULTIMARGIN_CLONES Index first_equal(const T* __restrict x, Index first, T value) {
  constexpr Index width = 32;
  for (;; first += width) {
    int equal = 0;
#pragma omp simd reduction(| : equal)
    for (Index k = first; k < first + width; ++k) equal |= x[k] == value;
    if (equal) break;
  }
  while (x[first] != value) ++first;
  return first;
}

// The least gradient of up and the largest of lower, less the reference value, and the tile of the former.
template <class T>
struct Extremes {
  T least, most;
  Index tile;
};

// G += t (a - b); relative to `reference`, above = G where up (up = 0) and infinity elsewhere (up = infinity), below = G
// where lower (low = 0) and -infinity elsewhere (low = -infinity). The same pass finds their extremes.
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

// score_k = b_k^2 / a_k where b_k = below_k - own > 0, else 0, with a_k = kii + diag_k - 2 row_k, at least tiny. The first k
// of the largest score, or -1 where all are 0.
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
  return tile < 0 ? -1 : first_equal(score, tile, best);
}

}  // namespace pairs

// The descent over the samples `active` of a block (one column: block.m == 1). Others keep alpha and G as they were.
// The result is in alpha and G, which belong together also when an interrupt leaves run() half way.
template <class T>
class PairDescent {
 public:
  // room: memory for copies of the active part of rows; without enough of it rows are read where they are.
  PairDescent(const Block<T>& block, const double* diag, const double* low, const double* high,
              std::vector<Index> active, T* room, Index room_size)
      : b_(block), diag_(diag), low_(low), high_(high), active_(std::move(active)),
        n_(static_cast<Index>(active_.size())) {
    gathers_ = n_ < b_.q;
    stride_ = (n_ + 31) / 32 * 32;
    if (gathers_) {
      slots_.assign(static_cast<std::size_t>(n_), nullptr);
      room_ = room;
      rows_in_room_ = room_size / std::max<Index>(stride_, 1);
    }
    load();
  }

  ~PairDescent() {
    for (Index k = 0; k < n_; ++k) b_.G[active_[k]] = G_[k];
  }

  PairDescent(const PairDescent&) = delete;
  PairDescent& operator=(const PairDescent&) = delete;

  DescentResult run(double eps, Index max_iter, Index most_work) {
    DescentResult result{0, 0, 0.0, 0};
    if (n_ == 0) return result;
    const T* first = row(0);
    pairs::Extremes<T> found = search(first, first, 0.0);
    while (result.updates < max_iter && result.work < most_work) {
      // The search is in the precision of K, relative to the margin; what it finds is judged in double.
      if (!(static_cast<double>(found.most) - static_cast<double>(found.least) > 2 * eps)) break;
      const Index i = pairs::first_equal(above_, found.tile, found.least);
      const T* row_i = row(i);
      const Index j = pairs::best_partner(n_, row_i, diagonal_, below_, static_cast<T>(G_[i] - reference_),
                                          diagonal_[i], tiny_, score_);
      if (j < 0 || !(G_[j] > G_[i])) break;
      const double t = step(i, j, static_cast<double>(row_i[j]));
      if (!(t > 0.0)) break;
      reference_ = G_[i];
      found = search(row_i, row(j), t);
      ++result.updates;
      result.work += kWorkOfStep + kPasses * n_;
      interrupt_.poll(kPasses * n_);
    }
    result.violation = std::max(0.0, 0.5 * (static_cast<double>(found.most) - static_cast<double>(found.least)));
    return result;
  }

 private:
  static constexpr Index kPasses = 3, kWorkOfStep = 300;  // in the time of a multiply-add

  void load() {
    G_ = state_.reserve(stride_);
    up_ = search_.reserve(6 * stride_);
    lower_ = up_ + stride_;
    above_ = lower_ + stride_;
    below_ = above_ + stride_;
    diagonal_ = below_ + stride_;
    score_ = diagonal_ + stride_;
    double largest = 0.0;
    for (Index k = 0; k < n_; ++k) {
      const Index s = active_[k];
      G_[k] = b_.G[s];
      diagonal_[k] = static_cast<T>(diag_[s]);
      largest = std::max(largest, diag_[s]);
      mark(k);
    }
    tiny_ = static_cast<T>(std::max(kTiny * largest, 1e-30));
    if (n_ > 0) reference_ = G_[0];
  }

  // Whether sample k may go up or down, for the searches.
  void mark(Index k) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const Index s = active_[k];
    up_[k] = b_.alpha[s] < high_[s] ? T(0) : infinity;
    lower_[k] = b_.alpha[s] > low_[s] ? T(0) : -infinity;
  }

  pairs::Extremes<T> search(const T* a, const T* b, double t) {
    return pairs::shift_gradient(n_, a, b, t, reference_, up_, lower_, G_, above_, below_);
  }

  // Moves the pair; returns how far. A coefficient that meets its bound is exactly there.
  double step(Index i, Index j, double kij) {
    const Index s = active_[i], r = active_[j];
    const double a = std::max(diag_[s] + diag_[r] - 2 * kij, static_cast<double>(tiny_));
    const double room_i = high_[s] - b_.alpha[s], room_j = b_.alpha[r] - low_[r];
    const double t = std::min((G_[j] - G_[i]) / a, std::min(room_i, room_j));
    b_.alpha[s] = t == room_i ? high_[s] : b_.alpha[s] + t;
    b_.alpha[r] = t == room_j ? low_[r] : b_.alpha[r] - t;
    mark(i);
    mark(j);
    return t;
  }

  // Kernel values of sample k against the active ones: in place, or copied together when first asked for.
  const T* row(Index k) {
    const T* whole = b_.K + active_[k] * b_.K_stride;
    if (!gathers_) return whole;
    if (!slots_[k]) {
      if (copied_ < rows_in_room_) {
        slots_[k] = room_ + copied_++ * stride_;
      } else {
        spare_.push_back(std::vector<T>(static_cast<std::size_t>(stride_)));
        slots_[k] = spare_.back().data();
      }
      gather_row(whole, active_.data(), n_, slots_[k]);
    }
    return slots_[k];
  }

  static constexpr double kTiny = 1e-12;

  Block<T> b_;
  const double *diag_, *low_, *high_;
  std::vector<Index> active_;
  Index n_, stride_ = 0;
  bool gathers_ = false;
  T* room_ = nullptr;
  Index rows_in_room_ = 0, copied_ = 0;
  std::vector<T*> slots_;  // where a row was copied to
  std::vector<std::vector<T>> spare_;
  AlignedBuffer<double> state_;
  AlignedBuffer<T> search_;
  double* G_ = nullptr;
  T *up_ = nullptr, *lower_ = nullptr, *above_ = nullptr, *below_ = nullptr, *diagonal_ = nullptr, *score_ = nullptr;
  T tiny_ = 0;
  double reference_ = 0.0;
  Interrupt interrupt_;
};

// The samples that take part: those off their bounds, and those at one whose gradient is at most `width` on the right
// side of the middle between the largest violators.
inline std::vector<Index> samples_near_margin(const double* alpha, const double* G, const double* low,
                                              const double* high, Index q, double width) {
  double least = kInfinity, most = -kInfinity;
  for (Index k = 0; k < q; ++k) {
    if (alpha[k] < high[k]) least = std::min(least, G[k]);
    if (alpha[k] > low[k]) most = std::max(most, G[k]);
  }
  const double middle = 0.5 * (least + most);
  std::vector<Index> near;
  for (Index k = 0; k < q; ++k) {
    const bool up = alpha[k] < high[k], lower = alpha[k] > low[k];
    if ((up && lower) || (up && !(G[k] - middle > width)) || (lower && !(middle - G[k] > width))) near.push_back(k);
  }
  return near;
}

}  // namespace multimargin
