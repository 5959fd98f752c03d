// Coordinate descent for machines whose every step changes all classes of a sample.
//
// For them a step costs q times m multiply-adds, which read and write all of G for a single kernel row. At a solution
// most samples have most of their dual variables off their bounds, so the problem is close to a linear system with the
// matrix K. It is solved tile by tile:
//
//     a tile is a sample that violates its conditions and its nearest samples (by K) that were not visited yet,
//     because the small eigenvalues of K come from near samples;
//     inside the tile, samples are visited one after the other, several times, with the kernel and the gradient of
//     the tile alone (both in a core's own cache);
//     then the steps of all its samples change G together, on threads (state/gradient.hpp).
//
// A sweep visits every sample once. The next sweep draws other tiles, so that no border between tiles stays. While more
// than half of the samples are in tiles, the next sweep starts with momentum (momentum.hpp). If only a few violate,
// fewer are in tiles. If such sweeps have cost as much as a whole one, the others are whole, for the sake of the
// momentum.
#pragma once

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"
#include "solvers/momentum.hpp"
#include "solvers/subproblem.hpp"
#include "state/gradient.hpp"

namespace multimargin::solvers {

using namespace machines;
using namespace state;

// Single precision is enough for the gradients of a tile if eps is at least this.
inline constexpr double kSingleTileEps = 1e-5;

// Solves the subproblem in place. Ends when no row violates its conditions by more than eps, after max_sweeps, with the
// sweep that reaches most_work, or with one that moves nothing (float64 cannot resolve the steps).
//
// Gradients inside of a tile are of type S. Their rounding errors end with the tile: its steps change G in double.
template <class Machine, class T, class S>
class TileDescent {
 public:
  TileDescent(const Subproblem<T>& block, Machine machine, const DescentOptions& options)
      : b_(block), o_(options), machine_(std::move(machine)), random_(options.seed),
        interrupt_(options.seconds), K_(kTile * kTile), G_(kStride * block.m), rows_(kTile * block.m),
        delta_(rows_.size()),
        next_(3 * block.m), step_(block.m), violation_(block.q),
        momentum_(block.alpha, block.G, block.q * block.m), left_(block.q) {}

  DescentResult run() {
    DescentResult result{.violation = measure()};
    while (result.violation > o_.eps && result.sweeps < o_.max_sweeps && result.work < o_.most_work) {
      const Index before = result.updates, work_before = result.work;
      loose_ = momentum_.extrapolate(most_in_tiles());
      try {
        sweep(std::max(o_.eps, kShare * result.violation), result);
      } catch (...) {
        if (loose_) momentum_.undo();
        throw;
      }
      if (interrupt_.late()) {
        if (loose_) momentum_.undo();
        result.violation = measure();
        break;
      }
      ++result.sweeps;
      if (!most_in_tiles()) work_of_parts_ += result.work - work_before;
      momentum_.measure();
      result.violation = measure();
      if (result.updates == before) break;
    }
    return result;
  }

 private:
  static constexpr Index kTile = 256;
  // From the gradients of one class to those of the next: not a power of two, so that the gradients of one sample do
  // not compete for the same few places of the cache.
  static constexpr Index kStride = kTile + 64 / static_cast<Index>(sizeof(S));
  static constexpr int kPasses = 10;          // over a tile, at most
  static constexpr double kShare = 0.1;       // a sweep lowers all violations to this share of the largest
  static constexpr double kInside = 0.5;      // inside a tile, to this share of that
  static constexpr Index kWorkOfVisit = 160;  // in the time of a multiply-add

  // Whether the last sweep visited most samples.
  bool most_in_tiles() const { return 2 * static_cast<Index>(left_.size()) < b_.q; }

  // The violation of every row; returns the largest.
  double measure() {
    double worst = 0.0;
    for (Index i = 0; i < b_.q; ++i) {
      const Index k = i * b_.m;
      const double v = Machine::measure(b_.G + k, b_.alpha + k, b_.y[i], b_.C[i], b_.m).violation;
      worst = worse_of(worst, violation_[i] = v);
    }
    return worst;
  }

  // Solves tiles around the samples above the threshold (around all, if rows may be infeasible or sweeps over some have
  // cost enough), in random order, until each such sample was in a tile.
  void sweep(double threshold, DescentResult& result) {
    left_.resize(b_.q);
    std::iota(left_.begin(), left_.end(), Index{0});
    random_.shuffle(left_.data(), b_.q);
    const bool all = loose_ || work_of_parts_ > b_.q * b_.q * b_.m;
    seeds_.clear();
    for (Index i : left_)
      if (all || violation_[i] > threshold) seeds_.push_back(i);
    waits_.assign(b_.q, 1);
    for (Index seed : seeds_) {
      if (interrupt_.late()) return;
      if (!waits_[seed]) continue;
      choose(seed);
      load();
      const Index work = solve(kInside * threshold, result.updates) + take();
      result.work += work;
      interrupt_.poll(work);
    }
  }

  // Moves the samples nearest to the seed, those with the largest K_ij - K_jj / 2, from left_ to the tile.
  void choose(Index seed) {
    const T* row = b_.K + seed * b_.K_stride;
    auto nearness = [=, this](Index j) {
      return j == seed ? kInfinity : static_cast<double>(row[j]) - 0.5 * b_.diag[j];
    };
    const auto last = left_.begin() + std::min(kTile, static_cast<Index>(left_.size()));
    if (last != left_.end())
      std::nth_element(left_.begin(), last, left_.end(), [&](Index a, Index b) { return nearness(a) > nearness(b); });
    ids_.assign(left_.begin(), last);
    left_.erase(left_.begin(), last);
    for (Index i : ids_) waits_[i] = 0;
  }

  // Kernel, gradient and listed rows (machines/machine.hpp) of the tile.
  void load() {
    const auto n = static_cast<Index>(ids_.size()), m = b_.m;
    for (Index s = 0; s < n; ++s) {
      const Index i = ids_[s];
      gather_row(b_.K + i * b_.K_stride, ids_.data(), n, K_.data() + s * kTile);
      for (Index r = 0; r < m; ++r) G_[r * kStride + s] = static_cast<S>(b_.G[i * m + r]);
      std::copy_n(b_.alpha + i * m, m, rows_.data() + s * m);
      Machine::lift(b_.y[i], m, rows_.data() + s * m);
    }
    moved_.assign(n, 0);
  }

  // Passes over the tile until no row violates its conditions by more than eps. If rows may be infeasible, the first
  // pass moves them all. Returns the work.
  Index solve(double eps, Index& updates) {
    const auto n = static_cast<Index>(ids_.size());
    Index made = 0, passes = 0;
    for (Index last = -1; passes < kPasses && last != 0; ++passes) {
      last = 0;
      for (Index s = 0; s < n; ++s) last += visit(s, eps, loose_ && passes == 0);
      made += last;
    }
    updates += made;
    return made * n * b_.m + passes * n * kWorkOfVisit;
  }

  // One-sample solve of row s of the tile, if it violates its conditions by more than eps, or if it must. Returns
  // whether it moved.
  bool visit(Index s, double eps, bool must) {
    const Index i = ids_[s], m = b_.m, own = b_.y[i];
    double *row = rows_.data() + s * m, *G = next_.data(), *next = G + m, *step = next + m;
    for (Index r = 0; r < m; ++r) G[r] = static_cast<double>(G_[r * kStride + s]);
    if (!must && Machine::violation(G, row, own, b_.C[i], m) <= eps) return false;
    std::copy_n(row, m, next);
    machine_.minimise(G, b_.diag[i], own, b_.C[i], m, next);
    double largest = 0.0;
    for (Index r = 0; r < m; ++r) largest = std::max(largest, std::abs(step[r] = next[r] - row[r]));
    if (!must && !(largest > resolution(G, b_.diag[i], b_.C[i], m))) return false;
    std::copy_n(next, m, row);
    moved_[s] = 1;
    Machine::lower(own, m, step);
    for (Index r = 0; r < m; ++r) step_[r] = static_cast<S>(step[r]);
    add_outer(K_.data() + s * kTile, static_cast<Index>(ids_.size()), step_.data(), m, G_.data());
    return true;
  }

  // G[r, t] += step[r] k[t], rows kStride apart; two classes share the reading of k.
  static MULTIMARGIN_CLONES void add_outer(const T* __restrict k, Index n, const S* step, Index m, S* __restrict G) {
    Index r = 0;
    for (; r + 2 <= m; r += 2) {
      const S a = step[r], b = step[r + 1];
      S *first = G + r * kStride, *second = first + kStride;
      for (Index t = 0; t < n; ++t) {
        const auto weight = static_cast<S>(k[t]);
        first[t] += a * weight;
        second[t] += b * weight;
      }
    }
    if (r < m)
      for (Index t = 0; t < n; ++t) G[r * kStride + t] += step[r] * static_cast<S>(k[t]);
  }

  // Writes the tile's rows to the block and adds K[:, tile] delta to its gradient. Returns the work.
  Index take() {
    const auto n = static_cast<Index>(ids_.size()), m = b_.m;
    std::fill(delta_.begin(), delta_.end(), 0.0);
    for (Index s = 0; s < n; ++s) {
      if (!moved_[s]) continue;
      const Index i = ids_[s];
      double *row = rows_.data() + s * m, *alpha = b_.alpha + i * m, *delta = delta_.data() + s * m;
      Machine::lower(b_.y[i], m, row);
      for (Index r = 0; r < m; ++r) delta[r] = row[r] - alpha[r];
      std::copy_n(row, m, alpha);
    }
    return update_gradient(b_.K, b_.K_stride, ids_.data(), delta_.data(), n, b_.q, m, b_.G, o_.n_threads);
  }

  Subproblem<T> b_;
  DescentOptions o_;
  Machine machine_;
  Random random_;
  Interrupt interrupt_;
  std::vector<Index> ids_;            // the tile's samples
  std::vector<T> K_;                  // their kernel, kTile apart
  std::vector<S> G_;                  // their gradient, class after class, kStride apart
  std::vector<double> rows_, delta_;  // their listed rows, their steps
  std::vector<double> next_;          // of one sample: gradient, new row, step
  std::vector<S> step_;               // the same step
  std::vector<double> violation_;     // of every sample, at the start of the sweep
  Momentum momentum_;
  Index work_of_parts_ = 0;          // of sweeps over fewer than half of the samples
  bool loose_ = false;               // whether rows of alpha may be infeasible before they are visited
  std::vector<Index> left_, seeds_;  // samples in no tile of this sweep yet; above the threshold
  std::vector<char> waits_, moved_;  // whether a sample is in left_; whether one of the tile moved
};

}  // namespace multimargin::solvers
