// Coordinate descent for machines whose classes nothing couples: every class is a problem of its own,
//
//     minimise  1/2 <d, K_r d> + <G_r, d>   over  low <= alpha_r + d <= high,
//
// with K_r the kernel between the samples that are listed for class r (Machine::listed). So classes are solved one
// after the other, with a gradient that stays in a core's own cache, or several at a time on threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "block.hpp"
#include "face.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "reduce.hpp"

namespace multimargin {

// How a descent is to be made: to which violation, with so much work at most; the rest as in coordinate_descent.hpp.
struct DescentLimits {
  double eps;
  Index max_sweeps, most_work;
  bool staged, faces;
};

// One class of a block. Its gradient is of type S: float has half the traffic of double, and errors of some 1e-7 a
// hundred updates, which the next round's gradient does not have.
template <class Machine, class T, class S>
class ClassProblem {
 public:
  ClassProblem(const Block<T>& block, const double* diag, Machine machine)
      : b_(block), one_(block), diag_(diag), machine_(std::move(machine)) {
    one_.m = 1;
  }

  // Takes up class r of the samples `members`, whose kernel rows find place in `room`; where that is null, the
  // members are all samples, and the rows are those of K.
  void load(Index r, const std::vector<std::int32_t>& members, T* room) {
    r_ = r;
    room_ = room;
    members_ = members.data();
    n_ = static_cast<Index>(members.size());
    for (auto* v : {&G_, &rise_, &fall_}) v->resize(members.size());
    alpha_.resize(members.size());
    uses_.assign(members.size(), 0);
    list_.resize(members.size());
    at_.assign(size(b_.q), -1);
    for (Index j = 0; j < n_; ++j) {
      const Index i = members_[j];
      at_[size(i)] = static_cast<std::int32_t>(j);
      alpha_[size(j)] = b_.alpha[i * b_.m + r];
      G_[size(j)] = static_cast<S>(b_.G[i * b_.m + r]);
      mark(j);
    }
  }

  // Lowers the violation to eps. A pass visits the samples above half the largest violation (or, not staged, above
  // eps): hardly more updates than always the worst would take. Ends early after as many updates as max_sweeps
  // sweeps make, with most_work, with one that moves nothing (the machine cannot resolve the steps), or when told to.
  DescentResult run(const DescentLimits& limits, const std::atomic<bool>& stop) {
    DescentResult result{0, 0, 0.0, 0};
    FaceSteps<Machine, T> faces;
    double below = kInfinity;  // what could not move has to wait for the others
    for (;;) {
      result.violation = largest(G_.data(), rise_.data(), fall_.data(), n_);
      result.work += n_;
      if (!(result.violation > limits.eps) || stop) break;
      if (result.updates >= limits.max_sweeps * n_ || result.work >= limits.most_work) break;
      const double share = limits.staged ? kShare * result.violation : 0.0;
      const double threshold = std::max(limits.eps, std::min(share, below));
      if (limits.faces) faces.step(one_, *this, diag_, machine_, threshold, result, interrupt_);
      const Index updates = pass(threshold, result);
      ++result.sweeps;
      result.updates += updates;
      if (updates == 0 && threshold <= limits.eps) break;
      below = updates == 0 ? kShare * threshold : kInfinity;
    }
    return result;
  }

  // Hands alpha and G back to the block.
  void store() const {
    for (Index j = 0; j < n_; ++j) {
      const Index k = members_[j] * b_.m + r_;
      b_.alpha[k] = alpha_[size(j)];
      b_.G[k] = static_cast<double>(G_[size(j)]);
    }
  }

  // What a face asks (face.hpp): samples by their numbers in the block, each with one pair at most.
  Index count(Index i) const { return at_[size(i)] >= 0; }
  Index own(Index i) const { return b_.y[i] == r_ ? 0 : -1; }
  Index label(Index, Index) const { return 0; }
  void read(Index i, double* G, double* alpha) const {
    if (at_[size(i)] < 0) return;
    *G = static_cast<double>(G_[size(at_[size(i)])]);
    *alpha = alpha_[size(at_[size(i)])];
  }
  Index write(Index i, const double* alpha) { return at_[size(i)] < 0 ? 0 : step(at_[size(i)], *alpha); }

 private:
  static constexpr double kShare = 0.5;
  static constexpr int kTogether = 16;
  static constexpr Index kWorkOfVisit = 16;  // in the time of a multiply-add

  static std::size_t size(Index i) { return static_cast<std::size_t>(i); }

  // Which ways the coefficient of member j can go.
  void mark(Index j) {
    const Index i = members_[j];
    const double least = kActive * b_.C[i];
    rise_[size(j)] = Machine::rise(alpha_[size(j)], b_.y[i] == r_, b_.C[i]) > least;
    fall_[size(j)] = Machine::fall(alpha_[size(j)], b_.y[i] == r_, b_.C[i]) > least;
  }

  // v_j = [-G_j]_+ where alpha_j can rise, [G_j]_+ where it can fall.
  static MULTIMARGIN_INLINE S violation(S G, S rise, S fall) {
    const S up = -G * rise, down = G * fall;
    return up > down ? up : down;
  }

  // max_j v_j; NaN where G has one.
  static MULTIMARGIN_CLONES double largest(const S* G, const S* rise, const S* fall, Index n) {
    S worst[kTogether] = {}, broken[kTogether] = {};
    Index j = 0;
    for (; j + kTogether <= n; j += kTogether)
      for (int l = 0; l < kTogether; ++l) {
        const S v = violation(G[j + l], rise[j + l], fall[j + l]);
        worst[l] = v > worst[l] ? v : worst[l];
        broken[l] += S(0) * G[j + l];
      }
    for (int l = 0; j < n; ++j, ++l) {
      const S v = violation(G[j], rise[j], fall[j]);
      worst[l] = v > worst[l] ? v : worst[l];
      broken[l] += S(0) * G[j];
    }
    for (int l = 1; l < kTogether; ++l) {
      worst[0] = worst[l] > worst[0] ? worst[l] : worst[0];
      broken[0] += broken[l];
    }
    return static_cast<double>(worst[0] + broken[0]);
  }

  // Lists the members with v_j > threshold; returns their number.
  static MULTIMARGIN_CLONES Index list_above(const S* G, const S* rise, const S* fall, Index n, S threshold,
                                             std::int32_t* list) {
    Index count = 0;
    for (Index j = 0; j < n; ++j) {
      list[count] = static_cast<std::int32_t>(j);
      count += violation(G[j], rise[j], fall[j]) > threshold;
    }
    return count;
  }

  // One-sample solves of those above the threshold; returns how many moved.
  Index pass(double threshold, DescentResult& result) {
    const auto cut = static_cast<S>(threshold);
    const Index listed = list_above(G_.data(), rise_.data(), fall_.data(), n_, cut, list_.data());
    Index updates = 0, work = n_ + listed * kWorkOfVisit;
    for (Index k = 0; k < listed; ++k) {
      const Index j = list_[size(k)], i = members_[j];
      const auto G = static_cast<double>(G_[size(j)]);
      if (violation(G_[size(j)], rise_[size(j)], fall_[size(j)]) <= cut) continue;
      double next = alpha_[size(j)];
      const Index own = b_.y[i] == r_ ? 0 : -1;
      machine_.minimise(&G, diag_[i], own, b_.C[i], 1, &next);
      if (!(std::abs(next - alpha_[size(j)]) > resolution(&G, diag_[i], b_.C[i], 1))) continue;
      work += step(j, next);
      ++updates;
    }
    result.work += work;
    interrupt_.poll(work);
    return updates;
  }

  // Gives member j the coefficient alpha, and G += K_r[j, :] delta. Returns the work.
  Index step(Index j, double alpha) {
    const double delta = alpha - alpha_[size(j)];
    if (delta == 0.0) return 0;
    alpha_[size(j)] = alpha;
    mark(j);
    const T* row = b_.K + members_[j] * b_.K_stride;
    std::uint8_t& uses = uses_[size(j)];
    if (room_ && uses == 0) {  // rows are copied at their second use: many have no third
      uses = 1;
      add_gathered(row, members_, n_, delta, G_.data());
      return n_;
    }
    if (room_) {
      if (uses == 1) gather_row(row, members_, n_, room_ + j * n_);
      uses = 2;
      row = room_ + j * n_;
    }
    add_row(row, n_, delta, G_.data());
    return n_;
  }

  static MULTIMARGIN_CLONES void add_gathered(const T* __restrict row, const std::int32_t* columns, Index n, double delta,
                                              S* __restrict G) {
    const S by = static_cast<S>(delta);
    for (Index j = 0; j < n; ++j) G[j] += by * static_cast<S>(row[columns[j]]);
  }

  // G += delta row.
  static MULTIMARGIN_CLONES void add_row(const T* __restrict row, Index n, double delta, S* __restrict G) {
    const S by = static_cast<S>(delta);
    for (Index j = 0; j < n; ++j) G[j] += by * static_cast<S>(row[j]);
  }

  Block<T> b_, one_;  // the block, and the same for one class
  const double* diag_;
  Machine machine_;
  Interrupt interrupt_;
  Index r_ = 0, n_ = 0;  // class, members
  const std::int32_t* members_ = nullptr;
  T* room_ = nullptr;
  std::vector<S> G_, rise_, fall_;  // gradient; 1 where the coefficient can go up or down, else 0
  std::vector<double> alpha_;
  std::vector<std::uint8_t> uses_;  // of the kernel row: 0, 1, or more, and then it is in room
  std::vector<std::int32_t> list_;  // of a pass
  std::vector<std::int32_t> at_;    // of a sample among the members, or -1
};

// Solves the block subproblem (block.hpp) class by class, over the pairs that a change of G by width could move. The
// kernel blocks of the classes find place in `room`; where they do not, or have more entries than K itself, all
// pairs take part and all classes use K. The result does not depend on the number of threads.
template <class Machine, class T>
class ClassDescent {
 public:
  ClassDescent(const Block<T>& block, const double* diag, Machine machine, double width, T* room,
               Index room_size)
      : b_(block), diag_(diag), machine_(std::move(machine)), members_(size(block.m)),
        rooms_(size(block.m)) {
    list(width);
    Index entries = 0;
    for (Index r = 0; r < b_.m; ++r) entries += square(r);
    const bool split = entries < b_.q * b_.q && entries <= room_size;
    for (Index r = 0; r < b_.m; ++r) {
      rooms_[size(r)] = split ? room : nullptr;
      if (split) room += square(r);
    }
    if (!split) list(kInfinity);
  }

  DescentResult run(const DescentLimits& limits, int n_threads) {
    return kFloatEps <= limits.eps ? run_with<T>(limits, n_threads) : run_with<double>(limits, n_threads);
  }

 private:
  static constexpr double kFloatEps = 1e-5;  // what gradients in the precision of float rows can be brought to

  static std::size_t size(Index i) { return static_cast<std::size_t>(i); }
  Index square(Index r) const { return static_cast<Index>(members_[size(r)].size() * members_[size(r)].size()); }

  void list(double width) {
    for (auto& members : members_) members.clear();
    for (Index i = 0; i < b_.q; ++i) {
      const Index first = i * b_.m;
      auto listed = Machine::listed(b_.G + first, b_.alpha + first, b_.y[i], b_.C[i], b_.m, width);
      for (Index r = 0; r < b_.m; ++r)
        if (listed(r)) members_[size(r)].push_back(static_cast<std::int32_t>(i));
    }
  }

  template <class S>
  DescentResult run_with(DescentLimits limits, int n_threads) {
    std::vector<Index> order(size(b_.m));  // large ones first, so that threads end together
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return square(a) > square(b); });
    std::vector<DescentResult> results(size(b_.m));
    std::atomic<bool> stop{false};
    limits.most_work /= b_.m;
    Index entries = 0;
    for (Index r = 0; r < b_.m; ++r) entries += square(r);
    parallel_tasks(b_.m, worthwhile_threads(n_threads, static_cast<double>(entries)), [&] {
      return [&, problem = ClassProblem<Machine, T, S>(b_, diag_, machine_)](Index task) mutable {
        const Index r = order[size(task)];
        problem.load(r, members_[size(r)], rooms_[size(r)]);
        try {
          results[size(r)] = problem.run(limits, stop);
        } catch (...) {
          stop = true;
          problem.store();
          throw;
        }
        problem.store();
      };
    });
    DescentResult total{0, 0, 0.0, 0};
    for (const DescentResult& result : results) {
      total.sweeps = std::max(total.sweeps, result.sweeps);
      total.updates += result.updates;
      total.violation = worse_of(total.violation, result.violation);
      total.work += result.work;
    }
    return total;
  }

  Block<T> b_;
  const double* diag_;
  Machine machine_;
  std::vector<std::vector<std::int32_t>> members_;  // of the classes
  std::vector<T*> rooms_;                           // for their kernel blocks
};

}  // namespace multimargin
