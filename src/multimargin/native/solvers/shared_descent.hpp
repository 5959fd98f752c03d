// Block coordinate descent that several processes share. Each has some samples of the block, and the kernel rows of
// all its samples against those.
#pragma once

#include <functional>

#include "base/interrupt.hpp"
#include "base/random.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "solvers/lane_scan.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/step_message.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

// What a process of a shared descent knows of the others.
struct SharedSamples {
  Index rows;           // samples of the block, of all processes
  const Index* places;  // of this process's samples among them
  Index batch;          // samples that each process may solve in an iteration
  Index rank, ranks;    // the number of this process, and how many there are
  std::function<void(Index i)> complete;  // makes the kernel row of sample i of the block complete
  // exchange(mine, length, all) sends so many numbers, and receives those of all processes in the order of their ranks.
  std::function<void(const double* mine, Index length, double* all)> exchange;
};

// Solves the block in place. In every iteration each process solves a batch of its samples one after the other, as
// coordinate descent does, and tells the others its steps. All take the steps d of all. No process saw the steps of the
// others, so that together they may be too long. This shows afterwards, without further products:
//
//     D(alpha + t d) = D(alpha) + t <G, d> + t^2 / 2 <d, h>,   h = K d,   best t = -<G, d> / <d, h>
//
// A process has h for its own samples. It sends its parts of both products with its next steps. If the best t turns
// out to be below kFull, all go back to it and drop these next steps. Else the steps stand as they are: the dual has
// fallen, by at least 5/9 of the most possible, and variables have reached their bounds. The size of batches adapts to
// the best t. So the dual falls whatever the number of processes is, and an iteration takes one message.
//
// Batches are of samples with a violation above a threshold, in random order. The threshold starts at half the largest
// violation, and is halved once the processes find few samples above it, down to eps. Ends if no process finds a sample
// above eps that can move, or with the iteration that reaches most_work, max_sweeps times as many updates as the block
// has samples, or the time limit of a process.
//
// With one process it is coordinate descent in batches.
template <class Machine, class T, class Real>
class SharedDescent {
 public:
  using Variables = ListedVariables<Machine, T, Real>;

  SharedDescent(const Subproblem<T>& block, const SharedSamples& shared, Machine machine,
                Variables variables, const DescentOptions& options)
      : b_(block), shared_(shared), o_(options), machine_(std::move(machine)), random_(options.seed),
        interrupt_(options.seconds), variables_(std::move(variables)), message_(shared.batch, block.m),
        received_(shared.ranks * message_.length()), scan_(block.C, variables_), row_(3 * block.m),
        visited_in_(block.q, 0) {
    now_.h = last_.h = std::vector<Real>(variables_.gradient().size());
  }

  // Stores even if an interrupt leaves run() half way: alpha and G always belong together.
  ~SharedDescent() { variables_.store(); }

  SharedDescent(const SharedDescent&) = delete;
  SharedDescent& operator=(const SharedDescent&) = delete;

  DescentResult run() {
    DescentResult result{.violation = kInfinity};
    double threshold = kInfinity;  // the first iteration only finds the largest violation
    bool all_samples = true;       // whether the next iteration looks at all samples
    for (;;) {
      if (all_samples || (near_.empty() && since_look_ > b_.q / kOften)) look(threshold);
      take_batch(threshold);
      const Summary said = exchange();
      resize_batch(said.best_length());
      result.work = said.work;
      if (const double best = said.best_length(); best < kFull) {
        go_back_to(best);
        all_samples = false;
        if (!(best > 0.0)) break;  // float64 cannot resolve the steps
        continue;
      }
      if (said.steps == 0 && all_samples) {
        result.violation = said.worst;
        if (threshold <= o_.eps || !(said.worst > o_.eps)) break;
      }
      if (said.late || said.work >= o_.most_work || result.sweeps >= o_.max_sweeps) break;
      take_steps();
      result.updates += said.steps;
      result.sweeps = result.updates / shared_.rows;
      const bool few = threshold > o_.eps && kFew * said.steps <= batch_ * shared_.ranks;
      all_samples = few || said.steps == 0;
      if (few) threshold = std::max(o_.eps, kFall * std::min(said.worst, threshold));
    }
    return result;
  }

 private:
  // The samples of a batch, their values before and after, and K d at all own samples in the order of the gradient.
  struct Batch {
    std::vector<std::int32_t> samples;
    std::vector<double> before, after;
    std::vector<Real> h;

    void clear() {
      samples.clear(), before.clear(), after.clear();
      std::fill(h.begin(), h.end(), Real{0});
    }
  };

  static constexpr double kFall = 0.5;  // of the threshold from stage to stage, and of the largest violation at first
  static constexpr double kNear = 0.3;  // samples above this share of the threshold are listed
  static constexpr Index kFew = 4;      // a stage ends if less than one in so many of the possible steps are found
  static constexpr Index kOften = 16;   // a process looks again if its list is empty and so many of its samples moved
  // The least part of the steps that may be best; above kShort, more samples may move at a time.
  static constexpr double kFull = 0.6, kShort = 0.8;
  // In the time of a multiply-add: looking at a row, and solving one.
  static constexpr Index kWorkOfVisit = 160, kWorkOfUpdate = 800;
  static constexpr Index kAhead = 2;  // changes: so early kernel rows are fetched from memory

  // Reads gradient and values of sample i to row_; h is added to the gradient if it may not be zero.
  double violation(Index i, bool with_h) {
    const Index count = variables_.count(i);
    if (count == 0) return 0.0;
    double *G = row_.data(), *alpha = G + b_.m;
    variables_.read(i, G, alpha);
    if (with_h) variables_.add_values(i, now_.h, G);
    return Machine::violation(G, alpha, variables_.own(i), b_.C[i], count);
  }

  // Looks at all samples, and lists those that are above the threshold or may soon be, in random order. Batches take
  // them in turn: if only those above were listed, the same few would move again and again, and too far together.
  void look(double threshold) {
    worst_ = scan_.find(variables_.gradient().data(), kNear * threshold, near_);
    random_.shuffle(near_.data(), std::ssize(near_));
    since_look_ = next_ = 0;
    work_ += kWorkOfVisit * b_.q;
    interrupt_.poll(b_.m * b_.q);
  }

  // Solves listed samples above the threshold one after the other, and writes their steps to the message. A sample
  // leaves the list if it is found far below the threshold, and all do if none was above it.
  void take_batch(double threshold) {
    ++iteration_;
    now_.clear();
    message_.clear();
    for (Index left = std::ssize(near_); left > 0 && message_.steps() < batch_; --left) {
      if (next_ >= std::ssize(near_)) next_ = 0;
      const Index i = near_[next_];
      if (!message_.fits(variables_.count(i))) break;
      if (std::exchange(visited_in_[i], iteration_) == iteration_) break;  // its step is in the message already
      work_ += kWorkOfVisit;
      const double psi = violation(i, message_.steps() > 0);
      if (psi > threshold) solve(i);
      if (psi > kNear * threshold)
        ++next_;
      else
        near_[next_] = near_.back(), near_.pop_back();
    }
    if (message_.steps() == 0) near_.clear();
  }

  // Fewer steps at a time if those of all processes together were far too long.
  void resize_batch(double best) {
    if (best < kFull) batch_ = std::max(Index{1}, batch_ / 2);
    if (best > kShort) batch_ = std::min(shared_.batch, batch_ + batch_ / 4 + 1);
  }

  // The one-sample solve of the row that violation() has read.
  void solve(Index i) {
    const Index count = variables_.count(i);
    const double *G = row_.data(), *alpha = G + b_.m;
    double* next = row_.data() + 2 * b_.m;
    if (!solve_row(machine_, G, alpha, b_.diag[i], variables_.own(i), b_.C[i], count, next)) return;
    const Index sample = shared_.places[i];
    shared_.complete(sample);
    message_.add_step(sample);
    for (Index c = 0; c < count; ++c) {
      const Index r = variables_.label(i, c);
      const double change = next[c] - alpha[c];
      if (change == 0.0) continue;
      message_.add_class(r, change);
      add(sample, r, change);
    }
    now_.samples.push_back(static_cast<std::int32_t>(i));
    now_.before.insert(now_.before.end(), alpha, alpha + count);
    now_.after.insert(now_.after.end(), next, next + count);
    work_ += kWorkOfUpdate;
  }

  // h += K d for one change of d.
  void add(Index sample, Index r, double change) {
    const Index work = variables_.add_row(sample, r, change, now_.h);
    work_ += work;
    interrupt_.poll(work);
  }

  // Sends this process's steps, and what it knows of the last ones.
  Summary exchange() {
    message_.write_head(worst_, work_, interrupt_.late(), products_);
    shared_.exchange(message_.data(), message_.length(), received_.data());
    Summary said;
    for (Index rank = 0; rank < shared_.ranks; ++rank) StepMessage::summarise(message_of(rank), said);
    products_ = {};
    return said;
  }

  const double* message_of(Index rank) const { return received_.data() + rank * message_.length(); }

  // Takes the steps of all processes, and computes this process's part of <G, d> and <d, h>.
  void take_steps() {
    changes_.clear();
    for (Index rank = 0; rank < shared_.ranks; ++rank)
      if (rank != shared_.rank) StepMessage::list_changes(message_of(rank), changes_);
    const auto last = std::ssize(changes_) - 1;
    for (Index k = 0; k <= last; ++k) {
      const Change ahead = changes_[std::min(k + kAhead, last)], change = changes_[k];
      variables_.prefetch(ahead.sample, ahead.r);
      shared_.complete(change.sample);
      add(change.sample, change.r, change.by);
    }
    Index at = 0;
    for (const Index i : now_.samples) {
      const Index count = variables_.count(i);
      double *G = row_.data(), *alpha = G + b_.m, *h = alpha + b_.m;
      variables_.read(i, G, alpha);
      std::fill(h, h + count, 0.0);
      variables_.add_values(i, now_.h, h);
      for (Index c = 0; c < count; ++c) {
        const double d = now_.after[at + c] - now_.before[at + c];
        products_.slope += G[c] * d;
        products_.curvature += h[c] * d;
      }
      place(i, now_.after.data() + at);
      at += count;
    }
    variables_.add_to_gradient(1.0, now_.h);
    since_look_ += std::ssize(now_.samples) * shared_.ranks;
    std::swap(now_, last_);
  }

  void place(Index i, const double* alpha) {
    variables_.place(i, alpha);
    scan_.refresh(variables_, i);
  }

  // Takes back all but the part t of the last steps.
  void go_back_to(double t) {
    const double part = t > 0.0 ? t : 0.0;
    Index at = 0;
    for (const Index i : last_.samples) {
      const double *before = last_.before.data() + at, *after = last_.after.data() + at;
      std::copy(before, before + variables_.count(i), row_.begin());
      move_towards(after, part, i, row_.data());
      place(i, row_.data());
      at += variables_.count(i);
    }
    variables_.add_to_gradient(part - 1.0, last_.h);
  }

  // alpha <- alpha + t (target - alpha). A variable that should become 0 does so when little is left of it: else every
  // one that ever had a weight would keep some.
  void move_towards(const double* target, double t, Index i, double* alpha) {
    const Index count = variables_.count(i), own = variables_.own(i);
    if (t > 0.0) Machine::move_towards(target, t, own, b_.C[i], count, alpha);
    for (Index c = 0; c < count; ++c)
      if (c != own && target[c] == 0.0 && std::abs(alpha[c]) <= kActive * b_.C[i])
        alpha[own] += std::exchange(alpha[c], 0.0);
    machine_.settle(own, b_.C[i], count, alpha);
  }

  Subproblem<T> b_;
  SharedSamples shared_;
  DescentOptions o_;
  Machine machine_;
  Random random_;
  Interrupt interrupt_;
  Variables variables_;
  StepMessage message_;
  std::vector<double> received_;    // the messages of all processes
  std::vector<Change> changes_;     // the steps of the others
  Products products_;               // of the last steps
  LaneScan<Machine, Variables> scan_;  // looks at all samples
  Batch now_, last_;                // the steps of this iteration and of the one before
  std::vector<double> row_;         // of one sample: gradient, alpha, a third row
  std::vector<Index> near_;         // listed samples
  Index next_ = 0;                  // of them
  std::vector<Index> visited_in_;   // the last iteration in which each sample was visited
  Index iteration_ = 0;
  Index since_look_ = 0;            // steps of all processes, about, since all samples were looked at
  Index batch_ = shared_.batch;     // samples to solve in an iteration
  double worst_ = 0.0;              // violation at the last look
  Index work_ = 0;
};

}  // namespace multimargin::solvers
