// A look at one sample of a machine with a box, 0 <= beta_r <= C or < infinity: its measures, and the classes that a
// step may change.
//
//     one-vs-rest     beta_y = alpha_y, beta_r = -alpha_r;  gamma_y = G_y, gamma_r = -G_r
//     weston-watkins  beta_r = -alpha_r for r != y;         gamma_r = G_y - G_r
//
// Classes with beta_r = 0 and gamma_r > 0 are at rest, and add nothing to gap, loss or violation. All others are
// listed: those with weight, and those whose G reaches the floor (0, or G_y), where gamma_r changes its sign.
#pragma once

#include "linear/linear_form.hpp"
#include "linear/listed_classes.hpp"

namespace multimargin::linear {

template <class W, class Machine>
class BoxLook : public ListedClasses<W> {
 public:
  using Form = LinearForm<Machine>;
  using typename ListedClasses<W>::Entry;
  using ListedClasses<W>::ListedClasses;

  // Takes the scores W^T x_i - T_i of sample i; returns its violation v.
  double look(Index i, const W* scores, W /*top*/) {
    this->scores_ = scores;
    const double C = task_.C[i], scale = std::min(C, this->most_);
    list_all(i, C);
    double worst = 0.0, gain = 0.0;
    for (Index c = kFirst; c < count_; ++c) {
      const double beta = beta_of(c), gamma = gamma_of(c);
      const double v = box::violation_of<Form::kBounded>(beta, gamma, C, scale);
      worst = v > worst ? v : worst;
      gain += Form::gain_of(beta, gamma, C);
    }
    gain_ = gain;
    return worst + 0.0 * G_[0];  // NaN if the scores are
  }

  // After look: the sample's share of the gap, and of the primal.
  double gain() const { return gain_; }
  double loss(Index i) const {
    const double C = task_.C[i], ridge = Form::ridge(C);
    double sum = 0.0;
    for (Index c = kFirst; c < count_; ++c) sum += Form::loss_of(ridge * beta_of(c) - gamma_of(c), C);
    return sum;
  }

  // After look: whether a variable is off its bounds, or leaves them if its gamma changes by margin.
  bool undecided(Index i, double margin) const {
    const double most = Form::most(task_.C[i]);
    Index near = 0;  // listed classes that reach the lower floor
    for (Index c = 0; c < count_; ++c) {
      near += this->G(classes_[c]) >= floor_ - margin;
      if (c < kFirst) continue;
      const double beta = beta_of(c), gamma = gamma_of(c);
      if (beta == 0.0 ? gamma <= margin : beta < most || gamma >= -margin) return true;
    }
    return this->number_from(floor_ - margin) > near;
  }

 protected:
  using ListedClasses<W>::task_;
  using ListedClasses<W>::dual_;
  using ListedClasses<W>::G_;
  using ListedClasses<W>::alpha_;
  using ListedClasses<W>::classes_;

  Index gather(Index /*i*/) const { return count_; }

 private:
  static constexpr Index kFirst = Form::kOwnMoves ? 0 : 1;  // listed class that has a variable

  MULTIMARGIN_INLINE void list_all(Index i, double C) {
    const Entry* entries = dual_->entries(i);
    const Index weighted = dual_->count(i) + 1;
    const double own = this->list(0, task_.y[i], dual_->own(i));
    for (Index e = 1; e < weighted; ++e) this->list(e, entries[e - 1].r, entries[e - 1].alpha);
    floor_ = Form::kOwnMoves ? 0.0 : own;
    count_ = this->list_from(static_cast<W>(floor_), weighted);
    if constexpr (!Form::kBounded) {
      const double ridge = Form::ridge(C);
      for (Index c = 0; c < weighted; ++c) G_[c] += ridge * alpha_[c];
    }
  }

  double beta_of(Index c) const { return c == 0 ? alpha_[c] : -alpha_[c]; }
  double gamma_of(Index c) const {
    if constexpr (Form::kOwnMoves) return c == 0 ? G_[c] : -G_[c];
    return G_[0] - G_[c];
  }

  Index count_ = 0;  // listed classes
  double floor_ = 0.0, gain_ = 0.0;
};

}  // namespace multimargin::linear
