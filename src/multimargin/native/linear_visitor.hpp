// One sample of a linear machine: its scores, what can be gained there, and the step.
//
// A visit reads the m scores of the row, G_i = s_i - e_y, and gives the classes that have weight or can get some to the
// machine's one-sample solve (crammer_singer.hpp); the weights follow, w_r += (alpha_ir - alpha_ir_old) x_i.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "counts.hpp"
#include "crammer_singer.hpp"
#include "linear_dual.hpp"
#include "linear_rows.hpp"
#include "linear_weights.hpp"

namespace multimargin {

struct LinearTask {
  const LinearRows* rows;
  Index m;
  const std::int32_t* y;
  const double* C;
  const double* norm;  // |x_i|^2
};

struct UpdateRule {
  SimplexUpdate solve = kSortUpdate;
  double tau = 0.0;  // bisection's tolerance
};

template <class W>
class LinearVisitor {
 public:
  using Entry = SparseDual::Entry;

  LinearVisitor(const LinearTask& task, LinearWeights<W> weights, SparseDual* dual,
                const UpdateRule& update, std::uint64_t seed)
      : task_(task),
        weights_(weights),
        dual_(dual),
        machine_(task.m, update.solve, seed, 1.0, update.tau),
        base_(static_cast<std::size_t>(weights.stride)),
        scores_(static_cast<std::size_t>(weights.stride)),
        spread_(static_cast<std::size_t>(weights.stride)),
        G_(static_cast<std::size_t>(task.m)),
        alpha_(static_cast<std::size_t>(2 * task.m)),
        classes_(static_cast<std::size_t>(task.m + 1)),
        changed_(static_cast<std::size_t>(task.m)),
        entries_(static_cast<std::size_t>(task.m)) {
    std::fill(base_.begin() + task.m, base_.end(), std::numeric_limits<W>::lowest());
    for (LinearRow<W>& row : row_) row.reserve(task.rows->longest());
    other_.reserve(task.rows->longest());
  }

  const LinearWeights<W>& weights() const { return weights_; }
  void use(W* values) { weights_.values = values; }

  // Asks memory for a row that will be announced soon.
  void foresee(Index i) const {
    task_.rows->prefetch(i);
    dual_->prefetch(i);
  }

  // Reads a row ahead of its visit.
  void announce(Index i) {
    task_.rows->load(i, row_[1 - now_]);
    weights_.prefetch(row_[1 - now_]);
    MULTIMARGIN_PREFETCH(dual_->entries(i));
    next_ = i;
  }

  // Reads the scores of sample i; returns its violation psi.
  double look(Index i) {
    if (next_ == i) {
      now_ = 1 - now_;
      next_ = -1;
    } else {
      task_.rows->load(i, row_[now_]);
    }
    const Index y = task_.y[i];
    base_[static_cast<std::size_t>(y)] = W{-1};
    top_ = weights_.scores(row_[now_], base_.data(), scores_.data());
    base_[static_cast<std::size_t>(y)] = W{0};
    const double own_z = task_.C[i] - dual_->own(i), active = kActive * task_.C[i];
    low_ = own_z > active ? G(y) : kInfinity;
    gain_ = own_z * (top_ - G(y));
    const Entry* entries = dual_->entries(i);
    for (Index e = 0; e < dual_->count(i); ++e) {
      const double z = -entries[e].alpha, below = G(entries[e].r);
      if (z > active) low_ = std::min(low_, below);
      gain_ += z * (top_ - below);
    }
    return top_ - low_;
  }

  // After look: the sample's share of the gap, sum_r z_r (top - G_r), and of the primal.
  double gain() const { return gain_; }
  double loss(Index i) const { return task_.C[i] * (top_ - G(task_.y[i])); }

  // After look: whether another class than the one with all the weight comes within margin of the top.
  bool undecided(Index i, double margin) const {
    const Index weighted = dual_->count(i) + (dual_->own(i) < task_.C[i]);
    if (weighted > 1) return true;
    Index near = 0;
    for (Index r = 0; r < task_.m; ++r) near += G(r) >= top_ - margin;
    return near > 1 || low_ < top_;
  }

  // After look: the step; returns whether there was one.
  bool step(Index i, double relax) {
    return with_count(gather(i, task_.y[i]), [&](auto count) { return step_of(count, i, relax); });
  }

  // What the last step added to which w_r, in units of x_i.
  struct Step {
    const std::int32_t* classes;
    const double* delta;
    Index count;
    double change = 0.0;  // of the dual
  };
  const Step& last_step() const { return step_; }

  // A step that another visitor made, for the weights of this one.
  void repeat(Index i, const Step& step) {
    task_.rows->load(i, other_);
    weights_.add(other_, step.classes, step.delta, step.count, spread_);
  }

 private:
  double G(Index r) const { return static_cast<double>(scores_[static_cast<std::size_t>(r)]); }

  // The step of the classes gathered.
  template <class Count>
  bool step_of(Count count, Index i, double relax) {
    const double C = task_.C[i], kii = task_.norm[i];
    double *G = G_.data(), *alpha = alpha_.data(), *next = alpha + task_.m;
    for (Index c = 0; c < count; ++c) next[c] = alpha[c];
    machine_.minimise_of(count, G, kii / relax, 0, C, next);
    const double noise = resolution(G, kii, C, count);
    double change = 0.0;
    Index changed = 0, kept = 0;
    bool moved = false;
    for (Index c = 0; c < count; ++c) {
      const double delta = next[c] - alpha[c];
      moved = moved || std::abs(delta) > noise;
      change += delta * (G[c] + 0.5 * kii * delta);
      changed_[static_cast<std::size_t>(changed)] = classes_[static_cast<std::size_t>(c)];
      G[changed] = delta;
      changed += delta != 0.0;
      if (c == 0) continue;
      entries_[static_cast<std::size_t>(kept)] = {classes_[static_cast<std::size_t>(c)], next[c]};
      kept += next[c] != 0.0;
    }
    if (!moved) return false;
    dual_->set(i, next[0], entries_.data(), kept);
    weights_.add(row_[now_], changed_.data(), G, changed, spread_);
    step_ = {changed_.data(), G, changed, change};
    return true;
  }

  // The classes that have weight or can get some, the label first, with G and alpha. With S any set of classes, theta >=
  // (sum_S D - C) / |S| (simplex.hpp). With D = z + step G and all classes of weight in S this is step times the mean
  // of G over S, so that no class below that mean gets weight. S is they, and the class of the top score.
  Index gather(Index i, Index y) {
    const Entry* entries = dual_->entries(i);
    const Index weighted = dual_->count(i);
    const double own = list(0, y, dual_->own(i));
    const bool has_weight = dual_->own(i) < task_.C[i];
    double sum = has_weight ? own : 0.0, largest = has_weight ? own : -kInfinity;
    Index members = weighted + has_weight;
    for (Index e = 0; e < weighted; ++e) {
      const double score = list(e + 1, entries[e].r, entries[e].alpha);
      sum += score;
      largest = std::max(largest, score);
    }
    if (largest < top_) {
      sum += top_;
      ++members;
    }
    const W floor = static_cast<W>(sum / static_cast<double>(members));
    const W* scores = scores_.data();
    std::int32_t* classes = classes_.data();
    Index count = weighted + 1;
    for (Index r = 0; r < task_.m; ++r) {
      classes[count] = static_cast<std::int32_t>(r);
      count += scores[r] >= floor;
    }
    for (Index c = weighted + 1; c < count; ++c) list(c, classes[c], 0.0);
    return count;
  }

  // A class of the sample at hand; returns its G, and lets no other list have it.
  double list(Index c, Index r, double alpha) {
    const double score = G(r);
    classes_[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(r);
    G_[static_cast<std::size_t>(c)] = score;
    alpha_[static_cast<std::size_t>(c)] = alpha;
    scores_[static_cast<std::size_t>(r)] = std::numeric_limits<W>::lowest();
    return score;
  }

  LinearTask task_;
  LinearWeights<W> weights_;
  SparseDual* dual_;
  CrammerSinger machine_;
  LinearRow<W> row_[2];  // of this visit, and announced
  LinearRow<W> other_;   // of somebody else's step
  Step step_{};
  int now_ = 0;
  Index next_ = -1;
  double top_ = 0.0, low_ = 0.0, gain_ = 0.0;
  std::vector<W> base_;  // -e_y while sample i is scored; what is no class is far below all
  std::vector<W> scores_, spread_;
  std::vector<double> G_, alpha_;
  std::vector<std::int32_t> classes_, changed_;
  std::vector<Entry> entries_;
};

}  // namespace multimargin
