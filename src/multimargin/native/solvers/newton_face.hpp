// Newton's method over the face of a small block: the variables alpha_ir off their bounds.
//
// Descent soon finds most of the face, but then creeps along it if the kernel is nearly singular. All other variables
// are held. Over the steps d of those in the face,
//
//     minimise  1/2 <d, H d> + <G, d>   subject to   sum_r d_ir = 0 in every sample i,
//
// H block diagonal over classes. One variable per sample is minus the sum of the sample's others, which leaves a dense,
// positive definite system: its Cholesky factor gives d exactly, whatever the condition. From there on samples go
// along t d. One that reaches a bound stops there, the others go on, as long as the dual falls. A variable that has
// reached its bound leaves the face, and the next step is over the others. No variable joins it: descent does that.
//
// (Faces of larger blocks are left to conjugate gradients, face.hpp.)
#pragma once

#include "base/lapack.hpp"
#include "solvers/whole_variables.hpp"

namespace multimargin::solvers {

using namespace machines;

template <class Machine, class T>
class NewtonFace {
 public:
  using Variables = WholeVariables<Machine, T>;

  // Steps if the work since the last step is that of a few such steps. Whether samples moved; adds the work.
  bool step(Variables& variables, Index& work) {
    if (work < next_) return false;
    find(variables);
    const Index price = work_of_step(variables);
    if (work - last_ < kWait * price || count_ == 0) {
      next_ = count_ == 0 ? work + price : last_ + kWait * price;
      return false;
    }
    bool moved = false;
    for (int steps = 0; steps < kMostSteps; ++steps) {
      if (steps > 0) find(variables);
      if (count_ == 0) break;
      work += work_of_step(variables);
      const Index stopped = solve(variables) ? move(variables) : -1;
      moved |= stopped >= 0;
      if (stopped <= 0) break;
    }
    last_ = work;
    next_ = work + price;
    return moved;
  }

 private:
  static constexpr Index kMostVariables = 768;  // of a system
  static constexpr int kMostSteps = 4;          // one after the other
  static constexpr Index kWait = 30;            // in units of the work of a step
  static constexpr double kRidge = kLeastEigenvalue<T>;  // of the mean K_ii
  static constexpr double kFactor = 0.03;       // time of a multiply-add of LAPACK

  struct Sample {
    Index i, first, count;  // its number; its variables in the face
    double length;          // of its step, in units of d
    double most;            // where it reaches a bound
  };

  // Finds the face: of every sample that can move the variables off their bounds, the one to be eliminated last.
  void find(const Variables& v) {
    samples_.clear(), class_.clear();
    const Index m = v.classes();
    for (Index i = 0; i < v.samples(); ++i) {
      const Index first = std::ssize(class_);
      Index last = -1;
      for (Index r = 0; r < m; ++r) {
        if (!v.may_rise(i, r) || !v.may_fall(i, r)) continue;
        class_.push_back(static_cast<std::int32_t>(r));
        const Index at = std::ssize(class_) - 1;
        if (last < 0 || v.rise(i, r) > v.rise(i, class_[last])) last = at;
      }
      const Index count = std::ssize(class_) - first;
      if (count < 2) {
        class_.resize(first);
        continue;
      }
      std::swap(class_[last], class_.back());
      samples_.push_back({i, first, count, 0.0, kInfinity});
    }
    count_ = std::ssize(class_) - std::ssize(samples_);
    if (count_ > kMostVariables) count_ = 0;
  }

  // Assembling and factoring; the products of all samples with the rows that move.
  Index work_of_step(const Variables& v) const {
    const auto n = static_cast<double>(count_), all = static_cast<double>(class_.size());
    return static_cast<Index>(kFactor * n * n * n + 1.5 * n * n + 0.8 * all * static_cast<double>(v.samples())) + 400;
  }

  // d by Cholesky's method; false if the matrix is not positive definite.
  bool solve(const Variables& v) {
    H_.assign(count_ * count_, 0.0);
    d_.resize(class_.size());
    free_.clear();
    double trace = 0.0;
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      trace += v.diagonal(samples_[s].i);
      for (Index k = 0; k + 1 < samples_[s].count; ++k) free_.push_back({s, samples_[s].first + k});
    }
    const double ridge = kRidge * trace / static_cast<double>(samples_.size());
    right_.resize(count_);
    for (Index a = 0; a < count_; ++a) {
      const Sample& mine = samples_[free_[a].sample];
      const std::int32_t r = class_[free_[a].at], last = last_class(mine);
      right_[a] = v.gradient(mine.i, last) - v.gradient(mine.i, r);
      const T* row = v.kernel_row(mine.i);
      double* column = H_.data() + a * count_;
      for (Index b = a; b < count_; ++b) {
        const Sample& other = samples_[free_[b].sample];
        const std::int32_t s = class_[free_[b].at], end = last_class(other);
        const int weight = (r == s) - (r == end) - (last == s) + (last == end);
        if (weight != 0) column[b] = weight * to_stored<double>(row[other.i]);
      }
      column[a] += ridge;
    }
    lapack::require();
    if (!lapack::factor(H_.data(), count_)) return false;
    lapack::solve(H_.data(), count_, right_.data());
    for (const Sample& s : samples_) d_[s.first + s.count - 1] = 0.0;
    for (Index a = 0; a < count_; ++a) {
      const Sample& mine = samples_[free_[a].sample];
      d_[free_[a].at] = right_[a];
      d_[mine.first + mine.count - 1] -= right_[a];
    }
    return true;
  }

  std::int32_t last_class(const Sample& s) const { return class_[s.first + s.count - 1]; }

  // Moves the samples along d, each as far as its bounds allow. Returns how many were stopped, or -1 if nothing moved.
  Index move(Variables& v) {
    collect(v);
    order_.resize(samples_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](auto a, auto b) { return samples_[a].most < samples_[b].most; });
    double t = 0.0;
    Index stopped = 0;
    for (;; ++stopped) {
      const auto [slope, curvature] = derivatives();
      if (!(slope + curvature * t < 0.0)) break;
      const double end = curvature > 0.0 ? -slope / curvature : kInfinity;
      const double bound = stopped < std::ssize(order_) ? samples_[order_[stopped]].most : kInfinity;
      if (end <= bound || bound == kInfinity) {
        t = std::max(t, std::min(end, 1.0 / kRidge));
        break;
      }
      t = bound;
      stop(order_[stopped], t);
    }
    for (Sample& s : samples_)
      if (s.length < 0.0) s.length = t;
    return take(v) ? stopped : -1;
  }

  // The kernel between the samples of the face, the products H d, and where the samples reach their bounds.
  void collect(const Variables& v) {
    const auto n = std::ssize(samples_);
    K_.resize(n * n);
    columns_.resize(n);
    for (Index s = 0; s < n; ++s) columns_[s] = static_cast<std::int32_t>(samples_[s].i);
    for (Index s = 0; s < n; ++s) gather_row(v.kernel_row(columns_[s]), columns_.data(), n, K_.data() + s * n);
    moving_.assign(v.classes() * n, 0.0);
    held_.assign(v.classes() * n, 0.0);
    G_.resize(class_.size());
    for (Index s = 0; s < n; ++s) {
      Sample& sample = samples_[s];
      sample.length = -1.0;
      for (Index k = sample.first; k < sample.first + sample.count; ++k) {
        const Index r = class_[k];
        add_scaled(K_.data() + s * n, n, d_[k], moving_.data() + r * n);
        G_[k] = v.gradient(sample.i, r);
        const double room = d_[k] > 0.0 ? v.rise(sample.i, r) : v.fall(sample.i, r);
        if (d_[k] != 0.0) sample.most = std::min(sample.most, room / std::abs(d_[k]));
      }
    }
  }

  // The dual's derivative along t is slope + curvature t, as long as no sample stops.
  std::pair<double, double> derivatives() const {
    const auto n = std::ssize(samples_);
    double slope = 0.0, curvature = 0.0;
    for (Index s = 0; s < n; ++s) {
      const Sample& sample = samples_[s];
      if (sample.length >= 0.0) continue;
      for (Index k = sample.first; k < sample.first + sample.count; ++k) {
        const Index at = class_[k] * n + s;
        slope += d_[k] * (G_[k] + held_[at]);
        curvature += d_[k] * moving_[at];
      }
    }
    return {slope, curvature};
  }

  // Sample s stops at t d: its part of the products no longer grows with t.
  void stop(Index s, double t) {
    const auto n = std::ssize(samples_);
    Sample& sample = samples_[s];
    sample.length = t;
    for (Index k = sample.first; k < sample.first + sample.count; ++k) {
      const Index first = class_[k] * n;
      add_scaled(K_.data() + s * n, n, -d_[k], moving_.data() + first);
      add_scaled(K_.data() + s * n, n, t * d_[k], held_.data() + first);
    }
  }

  // Gives the variables their new values, and all samples their gradients; whether anything moved.
  bool take(Variables& v) {
    bool moved = false;
    for (const Sample& s : samples_) {
      if (!(s.length > 0.0)) continue;
      for (Index k = s.first; k < s.first + s.count; ++k) {
        const double change = s.length * d_[k];
        if (change == 0.0) continue;
        moved = true;
        v.change(s.i, class_[k], change);
        v.add_row(s.i, class_[k], change);
      }
    }
    return moved;
  }

  struct Free {
    std::size_t sample;
    Index at;  // in class_ and d_
  };
  std::vector<Sample> samples_;       // of the face
  std::vector<std::int32_t> class_;   // of its variables, sample after sample
  std::vector<Free> free_;            // the variables that are not eliminated
  std::vector<double> H_, right_;     // the system
  std::vector<double> d_, G_;         // of the variables: the direction, the gradient
  std::vector<double> K_;             // between the samples
  std::vector<double> moving_, held_;  // products of d, and of the samples that have stopped: class after class
  std::vector<std::int32_t> columns_;
  std::vector<Index> order_;  // samples by where they stop
  Index count_ = 0;           // unknowns of the system
  Index last_ = 0, next_ = 1;  // work at the last step, and at which the next is looked for
};

}  // namespace multimargin::solvers
