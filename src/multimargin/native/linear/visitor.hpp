// One sample of a linear machine, given its scores: its measures and its step.
//
// A visit gets the scores of all classes (from class_worker.hpp). The machine's look (simplex_look.hpp, box_look.hpp)
// measures the sample, and lists the classes that have weight or can get some. These go to the machine's one-sample
// solve (machines/). The caller then adds (alpha_ir - alpha_ir_old) x_i to w_r.
#pragma once

#include <string>

#include "base/counts.hpp"
#include "linear/box_look.hpp"
#include "linear/simplex_look.hpp"

namespace multimargin::linear {

struct UpdateRule {
  std::string name = "sort";  // one that the machine knows
  double tau = 0.0;           // tolerance of bisection and smo
};

template <class W, class Machine>
using LookOf = std::conditional_t<std::is_same_v<Machine, CrammerSinger>, SimplexLook<W>, BoxLook<W, Machine>>;

template <class W, class Machine>
class LinearVisitor : public LookOf<W, Machine> {
 public:
  using Form = LinearForm<Machine>;
  using Look = LookOf<W, Machine>;
  using typename ListedClasses<W>::Entry;

  LinearVisitor(const LabelledRows& task, SparseDual* dual, const UpdateRule& update, std::uint64_t seed)
      : Look(task, dual), sorts_(update.name == "sort"), machine_(made(task.m, update, seed)),
        changed_(this->G_.size()), entries_(this->G_.size()) {}

  // Prefetch the dual of a sample that will be looked at soon, and of the next one.
  void foresee(Index i) const { dual_->prefetch(i); }
  void announce(Index i) const { MULTIMARGIN_PREFETCH(dual_->entries(i)); }

  // After look: makes the step of the dual; returns whether there was one. Other processes make steps at the same time.
  // They add up safely if each counts its own way `stretch` times: |x_i|^2 is that much larger, and so is what the step
  // adds to the weights.
  bool step(Index i, double relax, double stretch) {
    const Index count = this->gather(i);
    if constexpr (std::is_same_v<Machine, CrammerSinger>)
      if (sorts_ && count <= kFour && task_.norm[i] > 0.0) {
        this->pad(count, kFour);
        const auto solve = [&](const double* G, double kii, double C, const double* alpha, double* next) {
          Machine::minimise_four(G, kii, C, count, alpha, next);
        };
        return step_of(Fixed<kFour>{}, i, relax, stretch, solve);
      }
    return with_count(count, [&](auto known) {
      const auto solve = [&](const double* G, double kii, double C, const double* alpha, double* next) {
        std::copy_n(alpha, Index{known}, next);
        if constexpr (std::is_same_v<Machine, CrammerSinger>)
          machine_.minimise_of(known, G, kii, 0, C, next);
        else
          machine_.minimise(G, kii, 0, C, known, next);
      };
      return step_of(known, i, relax, stretch, solve);
    });
  }

  // The last step, and the change of the dual objective.
  const LinearStep& last_step() const { return step_; }
  double last_change() const { return change_; }

 private:
  static constexpr Index kFour = 4;           // most steps are over at most so many classes
  static constexpr double kMostNoise = 1e-6;  // of C: a larger change is a step, however short the row is

  static Machine made(Index m, const UpdateRule& update, std::uint64_t seed) {
    const auto solve = Machine::find_update(update.name);
    if constexpr (std::is_same_v<Machine, CrammerSinger>) return Machine(m, solve, seed, 1.0, update.tau);
    else return Machine(m, solve, seed);
  }

  // The step over the listed classes; solve writes the new alpha.
  template <class Count, class Solve>
  bool step_of(Count count, Index i, double relax, double stretch, Solve solve) {
    const double kii = stretch * task_.norm[i] + Form::ridge(task_.C[i]), scale = Form::scale(task_.C[i], kii);
    double *G = G_.data(), *alpha = alpha_.data(), *next = alpha + G_.size();
    solve(G, kii / relax, scale, alpha, next);
    const double noise = std::min(resolution(G, kii, scale, count), kMostNoise * scale);
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

  using ListedClasses<W>::task_;
  using ListedClasses<W>::dual_;
  using ListedClasses<W>::G_;
  using ListedClasses<W>::alpha_;
  using ListedClasses<W>::classes_;
  bool sorts_;  // whether the update is the one by sorting
  Machine machine_;
  double change_ = 0.0;
  LinearStep step_{};
  std::vector<std::int32_t> changed_;
  std::vector<Entry> entries_;
};

}  // namespace multimargin::linear
