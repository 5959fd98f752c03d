// Dual coordinate descent for linear machines (Blondel, Fujino & Ueda, Algorithm 1).
//
//     minimise  D(alpha) = 1/2 sum_r |w_r|^2 - sum_i alpha_{i,y_i},   w_r = sum_i alpha_ir x_i,   alpha_i feasible,
//
// given the rows, a feasible alpha and its w_r; one sample after the other, each by its exact (or relaxed) update. The
// result is in the dual and the weights.
//
// A pass goes over all samples, or over the active ones: those that some class other than the one they put all their
// weight on comes within `margin` of. Samples found below the threshold wait 1, 3, 7, ... passes, unless it falls below
// what was found. Those updated wait too: what took a passes to grow to psi is expected to take a threshold / psi passes
// to grow to the threshold again.
//
// Threads: thread t owns the samples i with i % threads = t; all work on the same weights, without waiting for each other.
// So a thread lacks at most the steps that the others are just making, and where two write to the same weights at the
// same time, one of the steps is lost there: the driver rebuilds the weights from the dual, which nobody shares, now and
// then, and for the proof. Where samples are so alike that threads undo each other's work, it goes on with one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interrupt.hpp"
#include "linear_dual.hpp"
#include "linear_visitor.hpp"
#include "linear_weights.hpp"
#include "platform.hpp"
#include "random.hpp"

namespace multimargin {

struct PassResult {
  Index visits = 0, updates = 0, active = 0;
  double violation = 0.0;  // largest seen, before the sample's update
  double total = 0.0;      // sum of all samples' violations, each as it was when the sample was looked at last
  double change = 0.0;     // of the dual; with several threads, as each of them saw it
  double gap = 0.0;        // sum of all samples' shares, in the same way
};

struct PassRule {
  double threshold;  // samples with psi above it are updated
  double relax;      // of the step: 1 is exact
  double margin;     // of a pass over all samples: what is active afterwards
  bool shuffle;
};

// One thread's samples.
template <class W>
class LinearShard {
 public:
  LinearShard(const LinearTask& task, LinearWeights<W> weights, SparseDual* dual, const UpdateRule& update,
              std::uint64_t seed, int part)
      : visitor_(task, weights, dual, update, seed + 1),
        random_(seed),
        part_(part),
        parts_(dual->parts()),
        waiting_(static_cast<std::size_t>((dual->size() - part + parts_ - 1) / parts_)),
        last_(waiting_.size()) {}

  const PassResult& result() const { return result_; }

  void begin(bool all, const PassRule& rule) {
    const double total = all ? 0.0 : result_.total, gap = all ? 0.0 : result_.gap;
    result_ = {};
    result_.total = total;
    result_.gap = gap;
    all_ = all;
    rule_ = rule;
    visits_.clear();
    if (all) {
      for (std::size_t k = 0; k < last_.size(); ++k) visits_.push_back(static_cast<Index>(k));
      for (Waiting& waiting : waiting_) waiting.level = waiting.left = 0;
      std::fill(last_.begin(), last_.end(), Last{});
      active_.clear();
    } else {
      for (const Index k : active_)
        if (!waits(k)) visits_.push_back(k);
    }
    if (rule.shuffle) random_.shuffle(visits_.data(), static_cast<Index>(visits_.size()));
    at_ = 0;
  }

  // Makes so many visits at most; returns whether any samples are left.
  bool go_on(Index visits) {
    const std::size_t end = std::min(visits_.size(), at_ + static_cast<std::size_t>(visits));
    for (; at_ < end; ++at_)
      if (visit(visits_[at_]) && all_) active_.push_back(visits_[at_]);
    result_.active = static_cast<Index>(active_.size());
    return at_ < visits_.size();
  }

 private:
  struct Waiting {
    std::uint8_t level = 0;  // how often the sample was found below the threshold since it was updated
    std::uint8_t left = 0;   // passes to wait
    std::uint8_t age = 1;    // passes since it was updated
  };
  struct Last {  // when the sample was looked at last
    float psi = 0.0f, gain = 0.0f;
  };
  static constexpr int kLevels = 5, kMostAge = 255;
  static constexpr double kMostDue = 7.0;  // passes an updated sample waits

  // Whether an active sample sits this pass out, which brings it a pass nearer to its turn.
  bool waits(Index k) {
    Waiting& waiting = waiting_[static_cast<std::size_t>(k)];
    const bool updated = waiting.level == 0;
    if (waiting.left == 0 || (!updated && static_cast<double>(last_[static_cast<std::size_t>(k)].psi) > rule_.threshold))
      return false;
    --waiting.left;
    grow_older(waiting);
    return true;
  }

  static void grow_older(Waiting& waiting) { waiting.age = static_cast<std::uint8_t>(std::min(waiting.age + 1, kMostAge)); }

  // Returns whether the sample is active.
  bool visit(Index k) {
    const Index i = k * parts_ + part_;
    const double psi = visitor_.look(i);
    if (at_ + 1 < visits_.size()) visitor_.announce(visits_[at_ + 1] * parts_ + part_);
    if (at_ + 3 < visits_.size()) visitor_.foresee(visits_[at_ + 3] * parts_ + part_);
    ++result_.visits;
    result_.violation = worse_of(result_.violation, psi);
    Last& last = last_[static_cast<std::size_t>(k)];
    result_.total += psi - static_cast<double>(last.psi);
    result_.gap += visitor_.gain() - static_cast<double>(last.gain);
    last = {static_cast<float>(psi), static_cast<float>(visitor_.gain())};
    const bool active = !all_ || visitor_.undecided(i, rule_.margin);
    Waiting& waiting = waiting_[static_cast<std::size_t>(k)];
    if (psi > rule_.threshold) {
      if (visitor_.step(i, rule_.relax)) {
        ++result_.updates;
        result_.change += visitor_.change();
      }
      const double due = static_cast<double>(waiting.age) * rule_.threshold / psi;
      waiting = {0, static_cast<std::uint8_t>(std::min(due, kMostDue)), 1};
    } else {
      waiting.level = static_cast<std::uint8_t>(std::min<int>(waiting.level + 1, kLevels));
      waiting.left = static_cast<std::uint8_t>((1 << waiting.level) - 1);
      grow_older(waiting);
    }
    return active;
  }

  LinearVisitor<W> visitor_;
  Random random_;
  Index part_, parts_;
  std::vector<Index> active_, visits_;  // numbers k of samples k * parts + part; of this pass, in its order
  std::vector<Waiting> waiting_;
  std::vector<Last> last_;
  std::size_t at_ = 0;
  bool all_ = true;
  PassRule rule_{};
  PassResult result_;
};

template <class W>
class LinearDescent {
 public:
  // Together: as many threads as the dual has parts. Else one part after the other.
  LinearDescent(const LinearTask& task, LinearWeights<W> weights, SparseDual* dual, const UpdateRule& update,
                std::uint64_t seed, bool together)
      : together_(together && has_openmp() && dual->parts() > 1) {
    for (int t = 0; t < dual->parts(); ++t) {
      const std::uint64_t own_seed = seed + 2 * static_cast<std::uint64_t>(t);
      shards_.push_back(std::make_unique<LinearShard<W>>(task, weights, dual, update, own_seed, t));
    }
  }
  LinearDescent(const LinearDescent&) = delete;
  LinearDescent& operator=(const LinearDescent&) = delete;

  // One pass over all samples, or over those that are still active.
  PassResult pass(bool all, const PassRule& rule) {
    for (auto& shard : shards_) shard->begin(all, rule);
    if (together_) {
      run_together();
    } else {
      for (auto& shard : shards_)
        while (shard->go_on(kVisits)) interrupt_.poll(kWork);
    }
    PassResult sum;
    for (const auto& shard : shards_) {
      const PassResult& part = shard->result();
      sum.visits += part.visits;
      sum.updates += part.updates;
      sum.active += part.active;
      sum.total += part.total;
      sum.change += part.change;
      sum.gap += part.gap;
      sum.violation = worse_of(sum.violation, part.violation);
    }
    return sum;
  }

 private:
  static constexpr Index kVisits = 64;     // between two looks at the clock
  static constexpr Index kWork = 100'000;  // of so many visits, about, for the interrupt's clock

  // What goes wrong in a thread ends the pass for all, and so does Ctrl-C, which only the first thread hears.
  void run_together() {
    std::atomic<bool> stop{false};
    parallel_tasks(static_cast<Index>(shards_.size()), static_cast<int>(shards_.size()), [&] {
      return [&, hears = thread_number() == 0](Index s) {
        try {
          while (!stop.load(std::memory_order_relaxed) && shards_[static_cast<std::size_t>(s)]->go_on(kVisits))
            if (hears) interrupt_.poll(kWork);
        } catch (...) {
          stop = true;
          throw;
        }
      };
    });
  }

  bool together_;
  std::vector<std::unique_ptr<LinearShard<W>>> shards_;
  Interrupt interrupt_;
};

}  // namespace multimargin
