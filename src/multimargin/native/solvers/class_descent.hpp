// Coordinate descent for machines whose classes nothing couples: every class is a problem of its own,
//
//     minimise  1/2 <d, K_r d> + <G_r, d>   over  low <= alpha_r + d <= high,
//
// with K_r the kernel between the samples that are listed for class r (Machine::listed). Classes are solved one after
// the other, so that a gradient stays in a core's own cache, or several at a time on threads.
#pragma once

#include "base/interrupt.hpp"
#include "base/reduce.hpp"
#include "base/row_loops.hpp"
#include "machines/machine.hpp"
#include "solvers/class_rows.hpp"
#include "solvers/face.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

// One class of a block. Its gradient is of type S. Float has half the memory traffic of double; its rounding errors,
// some 1e-7 per hundred updates, vanish when the next round computes the gradient afresh.
template <class Machine, class T, class S>
class ClassProblem {
 public:
  // position[id] is a sample's number in the block, or -1.
  ClassProblem(const Subproblem<T>& block, const KernelSource<T>& source, const std::vector<std::int32_t>& position,
               Machine machine, double seconds)
      : b_(block), one_(block), source_(source), position_(position), machine_(std::move(machine)),
        interrupt_(seconds), at_(position.size(), -1) {
    one_.m = 1;
  }

  // Loads class r. Its members are the samples that have kept rows and those listed for it (by their numbers in the
  // block). Members that are no longer listed are removed when they are many.
  void load(Index r, const std::vector<std::int32_t>& listed, ClassRows<T>& rows) {
    rows_ = &rows;
    for (std::int32_t i : listed) at_[source_.id(i)] = kListed;
    kept_.clear();
    for (Index j = 0; j < rows.size(); ++j)
      if (at_[rows.ids()[j]] == kListed) kept_.push_back(static_cast<std::int32_t>(j));
    if (static_cast<double>(rows.size()) * (1.0 - kIdle) > static_cast<double>(kept_.size())) rows.retain(kept_);
    for (Index j = 0; j < rows.size(); ++j) at_[rows.ids()[j]] = static_cast<std::int32_t>(j);
    for (std::int32_t i : listed)
      if (at_[source_.id(i)] == kListed) {
        at_[source_.id(i)] = static_cast<std::int32_t>(rows.size());
        rows.add(source_.id(i));
      }
    resize(r, rows.size());
    for (Index j = 0; j < n_; ++j) load(j, position_[rows.ids()[j]]);
  }

  // Loads class r with all samples of the block as members, which use their whole kernel rows.
  void load_all(Index r) {
    rows_ = nullptr;
    resize(r, b_.q);
    for (Index j = 0; j < n_; ++j) {
      at_[source_.id(j)] = static_cast<std::int32_t>(j);
      load(j, j);
    }
  }

  // Loads class r with the samples listed for it as members, and computes the kernel between them.
  void load_square(Index r, const std::vector<std::int32_t>& listed) {
    rows_ = nullptr;
    resize(r, std::ssize(listed));
    if (std::ssize(square_) < n_ * n_) square_.resize(n_ * n_);
    if (n_ > 0) b_.kernel->fill(KernelSquare<T>{listed.data(), n_, square_.data()});
    for (Index j = 0; j < n_; ++j) {
      at_[listed[j]] = static_cast<std::int32_t>(j);
      load(j, listed[j]);
    }
  }

  // Lowers the violation to eps. A pass visits the samples above half the largest violation (or, not staged, above
  // eps); this needs hardly more updates than always choosing the worst sample. Ends early after as many updates as
  // max_sweeps sweeps make, at most_work, with a pass that moves nothing (the machine cannot resolve the steps), or
  // once `stop` is set.
  DescentResult run(const DescentOptions& limits, const std::atomic<bool>& stop) {
    DescentResult result;
    FaceSteps<Machine, T> faces;
    double below = kInfinity;  // lowered while the samples above the threshold cannot move
    for (;;) {
      result.violation = largest(G_.data(), rise_.data(), fall_.data(), n_);
      result.work += n_;
      if (!(result.violation > limits.eps) || stop || interrupt_.late()) break;
      if (result.sweeps >= limits.max_sweeps || result.work >= limits.most_work) break;
      const double share = limits.staged ? kShare * result.violation : 0.0;
      const double threshold = std::max(limits.eps, std::min(share, below));
      if (limits.faces) faces.step(one_, *this, machine_, threshold, result, interrupt_);
      const Index updates = pass(threshold, result);
      result.updates += updates;
      result.sweeps = result.updates / n_;  // the number of sweeps that would make these updates
      if (updates == 0 && threshold <= limits.eps) {
        result.violation = largest(G_.data(), rise_.data(), fall_.data(), n_);  // a step over faces may have lowered it
        break;
      }
      below = updates == 0 ? kShare * threshold : kInfinity;
    }
    return result;
  }

  // Hands alpha and G back to the block.
  void store() {
    for (Index j = 0; j < n_; ++j) {
      const Index i = members_[j];
      if (i < 0) continue;
      b_.alpha[i * b_.m + r_] = alpha_[j];
      b_.G[i * b_.m + r_] = static_cast<double>(G_[j]);
    }
    std::fill(at_.begin(), at_.end(), -1);
  }

  // The interface of face.hpp: samples by their numbers in the block, each with one variable at most.
  Index samples() const { return n_; }
  Index sample(Index j) const { return members_[j]; }
  Index count(Index i) const { return i >= 0 && source_.has_row(i); }
  Index own(Index i) const { return b_.y[i] == r_ ? 0 : -1; }
  Index label(Index, Index) const { return 0; }
  const T* kernel_row(Index i, Index) { return row(at(i)); }  // valid until the next call
  Index column(Index i, Index) const { return at(i); }
  void read(Index i, double* G, double* alpha) const {
    if (at(i) < 0) return;
    *G = static_cast<double>(G_[at(i)]);
    *alpha = alpha_[at(i)];
  }
  Index write(Index i, const double* alpha) { return step(at(i), *alpha); }

 private:
  static constexpr double kShare = 0.5;
  static constexpr double kIdle = 0.25;  // share of the members that need not be listed
  static constexpr std::int32_t kListed = -2;
  static constexpr int kTogether = 16;
  static constexpr Index kWorkOfVisit = 16;  // in the time of a multiply-add

  std::int32_t at(Index i) const { return at_[source_.id(i)]; }

  void resize(Index r, Index n) {
    r_ = r;
    n_ = n;
    for (auto* v : {&G_, &rise_, &fall_}) v->assign(n, S(0));
    alpha_.resize(n);
    members_.resize(n);
    list_.resize(n);
  }

  // Member j is the block's sample i. If that is -1 (the sample has left the block), the member will not move.
  void load(Index j, Index i) {
    members_[j] = static_cast<std::int32_t>(i);
    if (i < 0) return;
    alpha_[j] = b_.alpha[i * b_.m + r_];
    G_[j] = static_cast<S>(b_.G[i * b_.m + r_]);
    if (source_.has_row(i)) mark(j);
  }

  // Which ways the coefficient of member j can go.
  void mark(Index j) {
    const Index i = members_[j];
    const double least = kActive * b_.C[i];
    rise_[j] = Machine::rise(alpha_[j], b_.y[i] == r_, b_.C[i]) > least;
    fall_[j] = Machine::fall(alpha_[j], b_.y[i] == r_, b_.C[i]) > least;
  }

  // v_j = [-G_j]_+ if alpha_j can rise, [G_j]_+ if it can fall.
  static MULTIMARGIN_INLINE S violation(S G, S rise, S fall) {
    const S up = -G * rise, down = G * fall;
    return up > down ? up : down;
  }

  // max_j v_j; NaN if G has one.
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
      const Index j = list_[k], i = members_[j];
      const auto G = static_cast<double>(G_[j]);
      if (violation(G_[j], rise_[j], fall_[j]) <= cut) continue;
      if (k + 1 < listed) prefetch(list_[k + 1]);
      double next = alpha_[j];
      machine_.minimise(&G, b_.diag[i], own(i), b_.C[i], 1, &next);
      if (!(std::abs(next - alpha_[j]) > resolution(&G, b_.diag[i], b_.C[i], 1))) continue;
      work += step(j, next);
      ++updates;
    }
    result.work += work;
    interrupt_.poll(work);
    return updates;
  }

  // Gives member j the coefficient alpha, and G += K_r[j, :] delta. Returns the work.
  Index step(Index j, double alpha) {
    const double delta = alpha - alpha_[j];
    if (delta == 0.0) return 0;
    alpha_[j] = alpha;
    mark(j);
    add_scaled(row(j), n_, delta, G_.data());
    return n_;
  }

  // Prefetches the source's row of member j, if that will be read.
  void prefetch(Index j) const {
    if (b_.kernel || (rows_ && rows_->has_row(j))) return;
    const T* full = source_.row(members_[j]);
    const auto columns = static_cast<Index>(position_.size());
    for (Index c = 0; c < columns; c += 64 / static_cast<Index>(sizeof(T))) MULTIMARGIN_PREFETCH(full + c);
  }

  // The kernel row of member j against all members; in scratch_ if it is not kept.
  const T* row(Index j) {
    if (b_.kernel) return square_.data() + j * n_;
    const T* full = source_.row(members_[j]);
    if (!rows_) return full;
    if (const T* kept = rows_->row(j, full)) return kept;
    scratch_.resize(n_);
    gather_row(full, rows_->ids(), n_, scratch_.data());
    return scratch_.data();
  }

  Subproblem<T> b_, one_;  // the block, and the same for one class
  KernelSource<T> source_;
  const std::vector<std::int32_t>& position_;
  Machine machine_;
  Interrupt interrupt_;
  Index r_ = 0, n_ = 0;             // class, members
  ClassRows<T>* rows_ = nullptr;    // null: members are all samples of the block
  std::vector<S> G_, rise_, fall_;  // gradient; 1 if the coefficient can go up or down, else 0
  std::vector<double> alpha_;
  std::vector<T> scratch_;
  std::vector<T> square_;  // the kernel between the members, if it is computed
  std::vector<std::int32_t> members_;  // their numbers in the block, or -1
  std::vector<std::int32_t> list_, kept_;
  std::vector<std::int32_t> at_;  // of a sample, by its id, among the members, or -1
};

// Solves the subproblem in place, class by class. Its kernel comes from `source` (rows of n columns) instead of
// block.K, and `kept` has those kernel rows of the classes that were used before. Or block.kernel computes the kernel
// of a class when its turn comes. The result does not depend on the number of threads.
template <class Machine, class T>
class ClassDescent {
 public:
  ClassDescent(const Subproblem<T>& block, const KernelSource<T>& source, Index n, Machine machine,
               std::vector<ClassRows<T>>& kept)
      : b_(block), source_(source), machine_(std::move(machine)), kept_(kept), position_(n, -1), listed_(block.m) {
    for (Index i = 0; i < b_.q; ++i) position_[source.id(i)] = static_cast<std::int32_t>(i);
  }

  // Lists the variables that a change of G by width could move; returns the entries of the classes' kernels.
  Index list(double width) {
    for (Index i = 0; i < b_.q; ++i) {
      if (!source_.has_row(i)) continue;
      const Index first = i * b_.m;
      auto listed = Machine::listed(b_.G + first, b_.alpha + first, b_.y[i], b_.C[i], b_.m, width);
      for (Index r = 0; r < b_.m; ++r)
        if (listed(r)) listed_[r].push_back(static_cast<std::int32_t>(i));
    }
    Index entries = 0;
    for (const auto& listed : listed_) entries += static_cast<Index>(listed.size() * listed.size());
    return entries;
  }

  // Over the listed variables. If complete, over all variables with the whole rows of the source, and all of G is
  // updated; then the block must have all samples.
  DescentResult run(const DescentOptions& options, bool complete) {
    complete_ = complete;
    using Single = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return options.eps >= kSingleEps ? run_with<Single>(options) : run_with<double>(options);
  }

 private:
  Index members(Index r) const { return complete_ ? b_.q : static_cast<Index>(listed_[r].size()); }

  // As many as pay. Computed kernels of classes, the largest of which has so many samples, take no more memory than
  // that of the whole block.
  int threads(const DescentOptions& limits, double entries, Index largest) const {
    const int worth = worthwhile_threads(limits.n_threads, entries);
    if (!b_.kernel || largest == 0) return worth;
    return static_cast<int>(std::clamp<Index>(b_.q * b_.q / (largest * largest), 1, worth));
  }

  template <class S>
  DescentResult run_with(DescentOptions limits) {
    std::vector<Index> order(b_.m);  // large ones first, so that threads end together
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return members(a) > members(b); });
    double entries = 0.0;
    for (Index r : order) entries += static_cast<double>(members(r)) * static_cast<double>(members(r));
    limits.most_work /= b_.m;
    std::vector<DescentResult> results(b_.m);
    std::atomic<bool> stop{false};
    parallel_tasks(b_.m, threads(limits, entries, members(order[0])), [&] {
      ClassProblem<Machine, T, S> one(b_, source_, position_, machine_, limits.seconds);
      return [&, problem = std::move(one)](Index task) mutable {
        const Index r = order[task];
        if (complete_)
          problem.load_all(r);
        else if (b_.kernel)
          problem.load_square(r, listed_[r]);
        else
          problem.load(r, listed_[r], kept_[r]);
        try {
          results[r] = problem.run(limits, stop);
        } catch (...) {
          stop = true;
          problem.store();
          throw;
        }
        problem.store();
      };
    });
    DescentResult total;
    for (const DescentResult& result : results) {
      total.sweeps = std::max(total.sweeps, result.sweeps);
      total.updates += result.updates;
      total.violation = worse_of(total.violation, result.violation);
      total.work += result.work;
    }
    return total;
  }

  Subproblem<T> b_;
  KernelSource<T> source_;
  Machine machine_;
  std::vector<ClassRows<T>>& kept_;                // of the classes
  std::vector<std::int32_t> position_;             // of a sample in the block, by its id, or -1
  std::vector<std::vector<std::int32_t>> listed_;  // samples of the classes, by their numbers in the block
  bool complete_ = false;
};

}  // namespace multimargin::solvers
