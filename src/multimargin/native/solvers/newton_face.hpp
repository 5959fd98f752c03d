// Newton's method over the face of a small block: the variables alpha_ir off their bounds.
//
// Descent soon finds most of the face, but then creeps along it if the kernel is nearly singular. All other variables
// are held. Over the steps d of those in the face,
//
//     minimise  1/2 <d, H d> + <G, d>   subject to   sum_r d_ir = 0 in every sample i,
//
// H block diagonal over classes (face_system.hpp solves that exactly). From there on samples go along t d. One that
// reaches a bound stops there, the others go on, as long as the dual falls. A variable that has reached its bound
// leaves the face, and the next step is over the others. No variable joins it: descent does that.
//
// (Faces of larger blocks are left to conjugate gradients, face.hpp.)
#pragma once

#include "solvers/face_system.hpp"
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
  static constexpr double kRidge = 0.5 * kLeastEigenvalue<T>;  // of the mean K_ii, for each entry

  struct Way {
    double length;  // of a sample's step, in units of d
    double most;    // where it reaches a bound
  };

  // Finds the face: of every sample that can move the variables off their bounds, the one to be eliminated last.
  void find(const Variables& v) {
    face_.clear();
    for (Index i = 0; i < v.samples(); ++i) {
      classes_.clear();
      std::size_t last = 0;
      for (Index r = 0; r < v.classes(); ++r) {
        if (!v.may_rise(i, r) || !v.may_fall(i, r)) continue;
        classes_.push_back(static_cast<std::int32_t>(r));
        if (v.rise(i, r) > v.rise(i, classes_[last])) last = classes_.size() - 1;
      }
      if (classes_.size() < 2) continue;
      std::swap(classes_[last], classes_.back());
      face_.add(i, classes_.data(), std::ssize(classes_));
    }
    count_ = face_.unknowns() > kMostVariables ? 0 : face_.unknowns();
  }

  // The system's, and the products of all samples with the rows that move.
  Index work_of_step(const Variables& v) const {
    const auto all = static_cast<double>(face_.variables());
    return FaceSystem::work(count_) + static_cast<Index>(0.8 * all * static_cast<double>(v.samples()));
  }

  // d by Cholesky's method; false if the matrix is not positive definite.
  bool solve(const Variables& v) {
    double trace = 0.0;
    for (const FaceSystem::Sample& s : face_.samples()) trace += v.diagonal(s.i);
    const double ridge = kRidge * trace / static_cast<double>(face_.samples().size());
    const auto right = [&](Index i, Index r) { return -v.gradient(i, r); };
    d_ = face_.solve(v.block(), [=](Index) { return ridge; }, right);
    return d_ != nullptr;
  }

  // Moves the samples along d, each as far as its bounds allow. Returns how many were stopped, or -1 if nothing moved.
  Index move(Variables& v) {
    collect(v);
    order_.resize(ways_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](auto a, auto b) { return ways_[a].most < ways_[b].most; });
    double t = 0.0;
    Index stopped = 0;
    for (;; ++stopped) {
      const auto [slope, curvature] = derivatives();
      if (!(slope + curvature * t < 0.0)) break;
      const double end = curvature > 0.0 ? -slope / curvature : kInfinity;
      const double bound = stopped < std::ssize(order_) ? ways_[order_[stopped]].most : kInfinity;
      if (end <= bound || bound == kInfinity) {
        t = std::max(t, std::min(end, 1.0 / kRidge));
        break;
      }
      t = bound;
      stop(order_[stopped], t);
    }
    for (Way& way : ways_)
      if (way.length < 0.0) way.length = t;
    return take(v) ? stopped : -1;
  }

  // The kernel between the samples of the face, the products H d, and where the samples reach their bounds.
  void collect(const Variables& v) {
    const auto& samples = face_.samples();
    const auto n = std::ssize(samples);
    K_.resize(n * n);
    columns_.resize(n);
    for (Index s = 0; s < n; ++s) columns_[s] = static_cast<std::int32_t>(samples[s].i);
    for (Index s = 0; s < n; ++s) gather_row(v.kernel_row(columns_[s]), columns_.data(), n, K_.data() + s * n);
    moving_.assign(v.classes() * n, 0.0);
    held_.assign(v.classes() * n, 0.0);
    G_.resize(face_.variables());
    ways_.assign(n, {-1.0, kInfinity});
    for (Index s = 0; s < n; ++s)
      for (Index k = samples[s].first; k < samples[s].first + samples[s].count; ++k) {
        const Index i = samples[s].i, r = face_.class_of(k);
        add_scaled(K_.data() + s * n, n, d_[k], moving_.data() + r * n);
        G_[k] = v.gradient(i, r);
        const double room = d_[k] > 0.0 ? v.rise(i, r) : v.fall(i, r);
        if (d_[k] != 0.0) ways_[s].most = std::min(ways_[s].most, room / std::abs(d_[k]));
      }
  }

  // The dual's derivative along t is slope + curvature t, as long as no sample stops.
  std::pair<double, double> derivatives() const {
    const auto n = std::ssize(ways_);
    double slope = 0.0, curvature = 0.0;
    for (Index s = 0; s < n; ++s) {
      if (ways_[s].length >= 0.0) continue;
      const auto [i, first, count] = face_.samples()[s];
      for (Index k = first; k < first + count; ++k) {
        const Index at = face_.class_of(k) * n + s;
        slope += d_[k] * (G_[k] + held_[at]);
        curvature += d_[k] * moving_[at];
      }
    }
    return {slope, curvature};
  }

  // Sample s stops at t d: its part of the products no longer grows with t.
  void stop(Index s, double t) {
    const auto n = std::ssize(ways_);
    ways_[s].length = t;
    const auto [i, first, count] = face_.samples()[s];
    for (Index k = first; k < first + count; ++k) {
      const Index column = face_.class_of(k) * n;
      add_scaled(K_.data() + s * n, n, -d_[k], moving_.data() + column);
      add_scaled(K_.data() + s * n, n, t * d_[k], held_.data() + column);
    }
  }

  // Gives the variables their new values, and all samples their gradients; whether anything moved.
  bool take(Variables& v) {
    bool moved = false;
    for (Index s = 0; s < std::ssize(ways_); ++s) {
      if (!(ways_[s].length > 0.0)) continue;
      const auto [i, first, count] = face_.samples()[s];
      for (Index k = first; k < first + count; ++k) {
        const double change = ways_[s].length * d_[k];
        if (change == 0.0) continue;
        moved = true;
        v.change(i, face_.class_of(k), change);
        v.add_row(i, face_.class_of(k), change);
      }
    }
    return moved;
  }

  FaceSystem face_;
  std::vector<std::int32_t> classes_;  // of a sample
  const double* d_ = nullptr;          // the direction: of the face's variables
  std::vector<double> G_;              // the same of the gradient
  std::vector<Way> ways_;              // of the face's samples
  std::vector<double> K_;              // between them
  std::vector<double> moving_, held_;  // products of d, and of the samples that have stopped: class after class
  std::vector<std::int32_t> columns_;
  std::vector<Index> order_;   // samples by where they stop
  Index count_ = 0;            // unknowns of the system; none if they are too many
  Index last_ = 0, next_ = 1;  // work at the last step, and at which the next is looked for
};

}  // namespace multimargin::solvers
