// A look at one sample of the Crammer-Singer machine, whose z = C e_y - alpha lies in a simplex: its measures, and the
// classes that a step may change.
#pragma once

#include "linear/listed_classes.hpp"

namespace multimargin::linear {

template <class W>
class SimplexLook : public ListedClasses<W> {
 public:
  using typename ListedClasses<W>::Entry;
  using ListedClasses<W>::ListedClasses;

  // Takes the scores G_i of sample i, the largest of which is `top`; returns its violation psi.
  double look(Index i, const W* scores, W top) {
    scores_ = scores;
    top_ = top;
    const Index y = task_.y[i];
    const double own_z = task_.C[i] - dual_->own(i), active = machines::kActive * std::min(task_.C[i], this->most_);
    double low = own_z > machines::kActive * task_.C[i] ? G(y) : kInfinity, gain = own_z * (top_ - G(y));
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
    return weighted > 1 || this->number_from(top_ - margin) > 1 || low_ < top_;
  }

 protected:
  using ListedClasses<W>::G;
  using ListedClasses<W>::task_;
  using ListedClasses<W>::dual_;
  using ListedClasses<W>::scores_;

  // Lists the classes that have weight or can get some; returns their number. For any set S of classes,
  // theta >= (sum_S D - C) / |S| (machines/simplex.hpp). With D = z + step G, and if S contains all classes with
  // weight, the right side is step times the mean of G over S, so no class below that mean gets weight. S is the
  // classes with weight and the class of the top score.
  Index gather(Index i) {
    const Entry* entries = dual_->entries(i);
    const Index weighted = dual_->count(i);
    const double own = this->list(0, task_.y[i], dual_->own(i));
    const bool has_weight = dual_->own(i) < task_.C[i];
    double sum = has_weight ? own : 0.0, largest = has_weight ? own : -kInfinity;
    Index members = weighted + has_weight;
    for (Index e = 0; e < weighted; ++e) {
      const double score = this->list(e + 1, entries[e].r, entries[e].alpha);
      sum += score;
      largest = std::max(largest, score);
    }
    if (largest < top_) {
      sum += top_;
      ++members;
    }
    return this->list_from(static_cast<W>(sum / static_cast<double>(members)), weighted + 1);
  }

 private:
  double top_ = 0.0, low_ = 0.0, gain_ = 0.0;
};

}  // namespace multimargin::linear
