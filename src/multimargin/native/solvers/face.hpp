// Conjugate gradients over the face of a block: the variables alpha_ir off their bounds.
//
// Coordinate descent soon finds which variables are off their bounds, but is slow if the kernel is nearly singular.
// All other variables are held. Over the steps d of those in the face,
//
//     minimise  1/2 <d, H d> + <G, d>   subject to   sum_r d_ir = 0 in every sample i  (Machine::kSumsToZero),
//
// where H is block diagonal over classes: K between the samples whose variable of that class is in the face. This is
// solved by conjugate gradients, projected on the constraint (the mean over the sample's variables is subtracted) and
// preconditioned by K_ii. Then every sample moves along its part of t d, as far as its bounds allow, with the one of a
// few lengths t that lowers the objective most. Variables that reach their bounds leave the face, and conjugate
// gradients start again over the others. No variable joins the face: coordinate descent does that.
#pragma once

#include "base/interrupt.hpp"
#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

template <class Machine, class T>
class Face {
 public:
  // Finds the face of the block's current point. Returns whether H fits a core's own cache or, if the descent is slow,
  // the last-level cache; if not, the search ends as soon as that is known.
  template <class Variables>
  bool find(const Subproblem<T>& b, const Variables& variables, bool slow) {
    const Index most = slow ? kMostIfSlow : kMost;
    classes_.resize(b.m);
    for (auto& members : classes_) members.clear();
    samples_.clear();
    row_.resize(2 * b.m);
    double *G = row_.data(), *alpha = G + b.m;
    entries_ = count_ = 0;
    for (Index k = 0; k < variables.samples() && entries_ <= most; ++k) {
      const Index i = variables.sample(k), count = variables.count(i);
      if (count == 0) continue;
      const Index own = variables.own(i);
      variables.read(i, G, alpha);
      const double least = kActive * b.C[i];
      auto in_face = [&](Index c) {
        return Machine::rise(alpha[c], c == own, b.C[i]) > least && Machine::fall(alpha[c], c == own, b.C[i]) > least;
      };
      Index active = 0;
      for (Index c = 0; c < count; ++c) active += in_face(c);
      if (active < Machine::kLeastClasses || !(b.diag[i] > 0.0)) continue;
      const auto s = static_cast<std::int32_t>(samples_.size());
      samples_.push_back({i, active, 1.0 / b.diag[i], least});
      for (Index c = 0; c < count; ++c) {
        if (!in_face(c)) continue;
        auto& members = classes_[variables.label(i, c)];
        entries_ += 2 * std::ssize(members) + 1;
        ++count_;
        members.push_back({s, static_cast<std::int32_t>(c), G[c], Machine::rise(alpha[c], c == own, b.C[i]),
                           Machine::fall(alpha[c], c == own, b.C[i])});
      }
    }
    return 0 < entries_ && entries_ <= most;
  }

  Index work() const { return entries_ + kWorkOfVariable * count_; }  // of one step, in multiply-adds

  // Lowers the objective over the face, until its gradient is below eps or `steps` steps are made. Returns whether
  // anything moved.
  template <class Variables>
  bool minimise(const Subproblem<T>& b, Variables& variables, double eps, Index steps) {
    load(b, variables);
    bool moved = false;
    for (int round = 0; round < kRounds && steps > 0; ++round) {
      const Index made = conjugate_gradients(eps, steps);
      if (made == 0 || !move()) break;
      moved = true;
      steps -= made;
      drop();
    }
    return moved;
  }

  // Gives the variables of each sample their new values. Returns the work.
  template <class Variables>
  Index take(const Subproblem<T>& b, const Machine& machine, Variables& variables) {
    double *G = row_.data(), *alpha = G + b.m;
    Index work = 0;
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      const Index i = samples_[s].i;
      variables.read(i, G, alpha);
      for (Index c = 0; c < variables.count(i); ++c) alpha[c] += step_[s * b.m + c];
      machine.settle(variables.own(i), b.C[i], variables.count(i), alpha);
      work += variables.write(i, alpha);
    }
    return work;
  }

 private:
  struct Sample {
    Index i, count;      // its number in the block, its variables in the face
    double step, least;  // 1 / K_ii; the least distance of a variable of the face from its bounds
  };
  struct Member {
    std::int32_t sample, c;  // position of the sample in samples_, of the variable among the sample's
    double G, rise, fall;    // gradient; how far it may go up and down
  };
  static constexpr Index kMost = Index{1} << 17, kMostIfSlow = Index{1} << 20;  // entries of H
  static constexpr Index kWorkOfVariable = 16;
  static constexpr int kRounds = 30;        // of conjugate gradients, with ever fewer variables
  static constexpr double kOutside = 0.05;  // share of the samples that d may take over their bounds
  static constexpr int kLengths = 8;        // t = 1, kShorter, kShorter^2, ...
  static constexpr double kShorter = 0.35;

  template <class Variables>
  void load(const Subproblem<T>& b, Variables& variables) {
    H_.resize(entries_);
    G_.clear(), rise_.clear(), fall_.clear(), of_.clear(), at_.clear(), sizes_.clear();
    step_.assign(samples_.size() * b.m, 0.0);
    T* out = H_.data();
    for (const auto& members : classes_) {
      columns_.clear();
      for (const Member& member : members) {
        columns_.push_back(static_cast<std::int32_t>(variables.column(samples_[member.sample].i, member.c)));
        of_.push_back(member.sample);
        at_.push_back(member.sample * b.m + member.c);
        G_.push_back(member.G);
        rise_.push_back(member.rise);
        if constexpr (Machine::kTwoSided) fall_.push_back(member.fall);
      }
      const auto u = static_cast<Index>(columns_.size());
      sizes_.push_back(u);
      for (Index i = 0; i < u; ++i, out += u)
        gather_row(variables.kernel_row(samples_[members[i].sample].i, members[i].c), columns_.data(), u, out);
    }
    make_room();
  }

  void make_room() {
    for (auto* v : {&d_, &image_, &residual_, &direction_, &scaled_, &product_, &tried_, &best_, &best_product_})
      v->resize(G_.size());
  }

  // out = H v.
  void multiply(const std::vector<double>& v, std::vector<double>& out) const {
    std::fill(out.begin(), out.end(), 0.0);
    const T* H = H_.data();
    const double* x = v.data();
    double* y = out.data();
    for (const Index u : sizes_) {
      Index i = 0;
      for (; i + 4 <= u; i += 4, H += 4 * u)
        add_four_rows(H, H + u, H + 2 * u, H + 3 * u, x[i], x[i + 1], x[i + 2], x[i + 3], u, y);
      for (; i < u; ++i, H += u) add_scaled(H, u, x[i], y);
      x += u;
      y += u;
    }
  }

  // Subtracts the mean over a sample's variables.
  void project(std::vector<double>& v) {
    if constexpr (!Machine::kSumsToZero) return;
    sums_.assign(samples_.size(), 0.0);
    for (std::size_t k = 0; k < v.size(); ++k) sums_[of_[k]] += v[k];
    for (std::size_t s = 0; s < samples_.size(); ++s) sums_[s] /= static_cast<double>(samples_[s].count);
    for (std::size_t k = 0; k < v.size(); ++k) v[k] -= sums_[of_[k]];
  }

  static MULTIMARGIN_CLONES double dot(const double* a, const double* b, Index n) {
    return sum_over(n, [=](Index k) { return a[k] * b[k]; });
  }

  double dot(const std::vector<double>& a, const std::vector<double>& b) const {
    return dot(a.data(), b.data(), static_cast<Index>(a.size()));
  }

  static MULTIMARGIN_CLONES double largest(const double* a, Index n) {
    return max_over(n, [=](Index k) { return std::abs(a[k]); });
  }

  // Computes d and H d by conjugate gradients from 0, until the projected gradient is below eps, or d takes many
  // samples over their bounds: further steps would mostly be cut off. Returns the steps made.
  Index conjugate_gradients(double eps, Index steps) {
    const auto n = static_cast<Index>(G_.size());
    const double most_outside = kOutside * static_cast<double>(samples_.size());
    std::fill(d_.begin(), d_.end(), 0.0);
    std::fill(image_.begin(), image_.end(), 0.0);
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (Index k = 0; k < n; ++k) residual_[k] = -G_[k];
    project(residual_);
    double before = kInfinity;
    for (Index step = 0; step < steps; ++step) {
      if (largest(residual_.data(), n) <= eps) return step;
      const double rho = precondition();
      const double beta = rho / before;
      before = rho;
      next_direction(scaled_.data(), beta, n, direction_.data());
      multiply(direction_, product_);
      const double curvature = dot(direction_, product_);
      if (!(curvature > 0.0)) return step;
      add_scaled(direction_.data(), n, rho / curvature, d_.data());
      add_scaled(product_.data(), n, rho / curvature, image_.data());
      project(product_);
      add_scaled(product_.data(), n, -rho / curvature, residual_.data());
      if (static_cast<double>(outside(n)) > most_outside) return step + 1;
    }
    return steps;
  }

  // residual / K_ii; returns its product with the residual.
  double precondition() {
    for (std::size_t k = 0; k < residual_.size(); ++k) scaled_[k] = residual_[k] * samples_[of_[k]].step;
    return dot(residual_, scaled_);
  }

  static MULTIMARGIN_CLONES void next_direction(const double* __restrict scaled, double beta, Index n,
                                                double* __restrict direction) {
    for (Index k = 0; k < n; ++k) direction[k] = scaled[k] + beta * direction[k];
  }

  // The number of variables over their bounds, an estimate of the number of such samples.
  Index outside(Index n) const {
    return above(d_.data(), rise_.data(), 1.0, n) + (Machine::kTwoSided ? above(d_.data(), fall_.data(), -1.0, n) : 0);
  }

  static MULTIMARGIN_CLONES Index above(const double* d, const double* room, double sign, Index n) {
    Index count = 0;
    for (Index k = 0; k < n; ++k) count += sign * d[k] > room[k];
    return count;
  }

  // Moves by e: every sample's part of t d, cut to its bounds, with the one of a few t that lowers
  // <G, e> + 1/2 <e, H e> most. Returns false, and moves nothing, if none lowers it.
  bool move() {
    double best = 0.0, t = 1.0;
    for (int tries = 0; tries < kLengths; ++tries, t *= kShorter) {
      cut(t);
      const double change = dot(G_, tried_) + 0.5 * dot(tried_, product_);
      if (change < best) {
        best = change;
        std::swap(best_, tried_);
        std::swap(best_product_, product_);
      } else if (best < 0.0) {
        break;
      }
    }
    if (best == 0.0) return false;
    for (std::size_t k = 0; k < G_.size(); ++k) {
      step_[at_[k]] += best_[k];
      rise_[k] = std::max(rise_[k] - best_[k], 0.0);
      if constexpr (Machine::kTwoSided) fall_[k] = std::max(fall_[k] + best_[k], 0.0);
      G_[k] += best_product_[k];
    }
    return true;
  }

  // Computes the step e and H e, which is t H d except for the variables of the few samples that are cut.
  void cut(double t) {
    sums_.assign(samples_.size(), t);
    for (std::size_t k = 0; k < d_.size(); ++k) {
      double& length = sums_[of_[k]];
      if (length * d_[k] > rise_[k]) length = rise_[k] / d_[k];
      if constexpr (Machine::kTwoSided)
        if (length * -d_[k] > fall_[k]) length = fall_[k] / -d_[k];
    }
    std::size_t k = 0;
    const T* row = H_.data();
    for (std::size_t j = 0; j < image_.size(); ++j) product_[j] = t * image_[j];
    for (const Index u : sizes_) {
      double* products = product_.data() + k;
      for (Index i = 0; i < u; ++i, ++k, row += u) {
        const double length = sums_[of_[k]];
        tried_[k] = length * d_[k];
        if (length < t) add_scaled(row, u, (length - t) * d_[k], products);
      }
    }
  }

  // Removes the variables that reached their bounds from the face and compacts the arrays.
  void drop() {
    std::size_t k = 0, left = 0;  // variables seen, variables kept
    const T* H = H_.data();
    T* out = H_.data();
    for (Index& u : sizes_) {
      columns_.clear();
      for (Index i = 0; i < u; ++i, ++k) {
        Sample& s = samples_[of_[k]];
        bool free = rise_[k] > s.least;
        if constexpr (Machine::kTwoSided) free = free && fall_[k] > s.least;
        if (!free) {
          --s.count;
          continue;
        }
        columns_.push_back(static_cast<std::int32_t>(i));
        of_[left] = of_[k], at_[left] = at_[k], G_[left] = G_[k], rise_[left] = rise_[k];
        if constexpr (Machine::kTwoSided) fall_[left] = fall_[k];
        ++left;
      }
      const auto kept = static_cast<Index>(columns_.size());
      for (Index i = 0; i < kept; ++i, out += kept) gather_row(H + columns_[i] * u, columns_.data(), kept, out);
      H += u * u;
      u = kept;
    }
    of_.resize(left), at_.resize(left), G_.resize(left), rise_.resize(left);
    if constexpr (Machine::kTwoSided) fall_.resize(left);
    make_room();
  }

  std::vector<Sample> samples_;
  std::vector<std::vector<Member>> classes_;  // the variables as they were found
  Index entries_ = 0, count_ = 0;             // of H, of variables
  std::vector<double> step_;                  // of every sample's variables, so far
  // Over the variables in the face, class after class:
  std::vector<Index> sizes_;  // of the classes
  std::vector<T> H_;
  std::vector<std::int32_t> of_;                                 // sample
  std::vector<std::size_t> at_;                                  // position in step_
  std::vector<double> G_, rise_, fall_;                          // at the current point
  std::vector<double> d_, image_;                                // the step, and H times it
  std::vector<double> residual_, direction_, scaled_, product_;  // of conjugate gradients
  std::vector<double> tried_, best_, best_product_;              // cut steps, and H times the best
  std::vector<double> sums_;                                     // one number per sample
  std::vector<std::int32_t> columns_;
  std::vector<double> row_;
};

// Decides when a descent steps over its face: for up to twice the work of the sweeps since the last such step, once
// that is enough for kLeastSteps steps of conjugate gradients.
template <class Machine, class T>
class FaceSteps {
 public:
  template <class Variables>
  bool step(const Subproblem<T>& b, Variables& variables, const Machine& machine, double threshold,
            DescentResult& result, Interrupt& interrupt) {
    if (result.work < next_) return false;
    const Index work = result.work - last_;
    const bool fits = face_.find(b, variables, result.sweeps > kManySweeps);
    const Index least = kLeastSteps * face_.work();
    if (!fits || work < least) {
      next_ = last_ + (fits ? least : 2 * work + 1);
      return false;
    }
    const Index steps = std::min(kMostWork, 2 * work) / face_.work();
    const Index taken = face_.minimise(b, variables, kShare * threshold, steps) ? face_.take(b, machine, variables) : 0;
    result.work += steps * face_.work() + taken;
    last_ = next_ = result.work;
    interrupt.poll(steps * face_.work() + taken);
    return taken > 0;
  }

 private:
  static constexpr Index kManySweeps = 60;         // most blocks need fewer; with more the descent counts as slow
  static constexpr Index kLeastSteps = 16;         // of conjugate gradients
  static constexpr Index kMostWork = 300'000'000;  // of conjugate gradients, before Ctrl-C is polled again
  static constexpr double kShare = 0.3;            // of the threshold: how exactly a face is solved

  Face<Machine, T> face_;
  Index last_ = 0, next_ = 1;  // work at the last step over a face, and at which the next is tried
};

}  // namespace multimargin::solvers
