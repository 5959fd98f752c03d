// One sample of a linear machine, given its scores: its measures and its step.
//
// A visit gets G_i = s_i - e_y (from class_worker.hpp) and passes the classes that have weight or can get some to the
// machine's one-sample solve (machines/crammer_singer.hpp). The caller then adds (alpha_ir - alpha_ir_old) x_i to w_r.
#pragma once

#include <bit>

#include "base/counts.hpp"
#include "linear/at_least.hpp"
#include "linear/class_worker.hpp"
#include "linear/sparse_dual.hpp"
#include "machines/crammer_singer.hpp"

namespace multimargin::linear {

using namespace machines;

struct UpdateRule {
  SimplexUpdate solve = SimplexUpdate::sort;
  double tau = 0.0;  // tolerance of bisection and smo
};

template <class W>
class LinearVisitor {
 public:
  using Entry = SparseDual::Entry;

  LinearVisitor(const LabelledRows& task, SparseDual* dual, const UpdateRule& update, std::uint64_t seed)
      : task_(task), dual_(dual), machine_(task.m, update.solve, seed, 1.0, update.tau), G_(task.m),
        alpha_(2 * G_.size()), classes_(G_.size()), changed_(G_.size()), entries_(G_.size()),
        listed_((G_.size() + 63) / 64) {}

  // Prefetch the dual of a sample that will be looked at soon, and of the next one.
  void foresee(Index i) const { dual_->prefetch(i); }
  void announce(Index i) const { MULTIMARGIN_PREFETCH(dual_->entries(i)); }

  // No alpha_{i,y_i} is above `most`. If that is far below the costs, it is the scale of what counts as zero.
  void expect(double most) { most_ = most; }

  // Takes the scores G_i of sample i, the largest of which is `top`; returns its violation psi. The scores are padded
  // to a multiple of 8 with values far below all others.
  double look(Index i, const W* scores, W top) {
    scores_ = scores;
    top_ = top;
    const Index y = task_.y[i];
    const double own_z = task_.C[i] - dual_->own(i), active = kActive * std::min(task_.C[i], most_);
    double low = own_z > kActive * task_.C[i] ? G(y) : kInfinity, gain = own_z * (top_ - G(y));
    const Entry *entry = dual_->entries(i), *end = entry + dual_->count(i);
    for (; entry != end; ++entry) {
      const double z = -entry->alpha, below = G(entry->r);
      low = z > active && below < low ? below : low;
      gain += z * (top_ - below);
    }
    low_ = low;
    gain_ = gain;
    return top_ - low;
  }

  // After look: the sample's share of the gap, sum_r z_r (top - G_r), and of the primal.
  double gain() const { return gain_; }
  double loss(Index i) const { return task_.C[i] * (top_ - G(task_.y[i])); }

  // After look: whether a class other than the one with all the weight comes within margin of the top.
  bool undecided(Index i, double margin) const {
    const Index weighted = dual_->count(i) + (dual_->own(i) < task_.C[i]);
    if (weighted > 1) return true;
    Index near = 0;
    for (Index r = 0; r < task_.m; ++r) near += G(r) >= top_ - margin;
    return near > 1 || low_ < top_;
  }

  // After look: makes the step of the dual; returns whether there was one. Other processes make steps at the same time.
  // They add up safely if each counts its own way `stretch` times: |x_i|^2 is that much larger, and so is what the step
  // adds to the weights.
  bool step(Index i, double relax, double stretch) {
    return with_count(gather(i, task_.y[i]), [&](auto count) { return step_of(count, i, relax, stretch); });
  }

  // The last step, and the change of the dual objective.
  const LinearStep& last_step() const { return step_; }
  double last_change() const { return change_; }

 private:
  static constexpr double kMostNoise = 1e-6;  // of C: a larger change is a step, however short the row is

  double G(Index r) const { return static_cast<double>(scores_[r]); }

  // The step over the gathered classes.
  template <class Count>
  bool step_of(Count count, Index i, double relax, double stretch) {
    const double C = task_.C[i], kii = stretch * task_.norm[i];
    double *G = G_.data(), *alpha = alpha_.data(), *next = alpha + task_.m;
    for (Index c = 0; c < count; ++c) next[c] = alpha[c];
    machine_.minimise_of(count, G, kii / relax, 0, C, next);
    const double noise = std::min(resolution(G, kii, C, count), kMostNoise * C);
    double change = 0.0;
    Index changed = 0, kept = 0;
    bool moved = false;
    for (Index c = 0; c < count; ++c) {
      const double delta = next[c] - alpha[c];
      moved = moved || std::abs(delta) > noise;
      change += delta * (G[c] + 0.5 * kii * delta);
      changed_[changed] = classes_[c];
      G[changed] = stretch * delta;
      changed += delta != 0.0;
      if (c == 0) continue;
      entries_[kept] = {classes_[c], next[c]};
      kept += next[c] != 0.0;
    }
    if (!moved) return false;
    dual_->set(i, next[0], entries_.data(), kept);
    step_ = {changed_.data(), G, changed};
    change_ = change;
    return true;
  }

  // Gathers the classes that have weight or can get some, the label first, with G and alpha. For any set S of classes,
  // theta >= (sum_S D - C) / |S| (machines/simplex.hpp). With D = z + step G, and if S contains all classes with
  // weight, the right side is step times the mean of G over S, so no class below that mean gets weight. S is the
  // classes with weight and the class of the top score.
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
    Index count = weighted + 1;
    for (Index first = 0; first < task_.m; first += 64) {
      std::uint64_t& listed = listed_[first / 64];
      const Index rest = std::min<Index>((task_.m - first + 7) / 8 * 8, 64);
      for (std::uint64_t bits = at_least(scores_ + first, rest, floor) & ~listed; bits != 0; bits &= bits - 1)
        list(count++, first + std::countr_zero(bits), 0.0);
      listed = 0;
    }
    return count;
  }

  // Adds a class of the current sample; returns its G.
  double list(Index c, Index r, double alpha) {
    const double score = G(r);
    classes_[c] = static_cast<std::int32_t>(r);
    G_[c] = score;
    alpha_[c] = alpha;
    listed_[r / 64] |= std::uint64_t{1} << (r % 64);
    return score;
  }

  LabelledRows task_;
  SparseDual* dual_;
  CrammerSinger machine_;
  const W* scores_ = nullptr;  // of the current sample
  double most_ = kInfinity;
  double top_ = 0.0, low_ = 0.0, gain_ = 0.0, change_ = 0.0;
  LinearStep step_{};
  std::vector<double> G_, alpha_;
  std::vector<std::int32_t> classes_, changed_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> listed_;  // one bit per class: whether it is among classes_
};

}  // namespace multimargin::linear
