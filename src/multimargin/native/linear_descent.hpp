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
// Threads: thread t owns the samples i with i % threads = t and a copy of the weights. After every few samples all
// threads meet and repeat on their own copy the steps that the others have made: a step costs only the few classes
// that changed, a visit all m. So a thread lacks at most the others' steps since the last meeting, and the result does
// not depend on who was faster. Where samples are so alike that this is too much, the driver goes on without threads, the
// parts taking turns on the same weights every few samples: one part after the other needed eight times the visits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "aligned_buffer.hpp"
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

// The steps of one thread between two meetings.
class StepLog {
 public:
  void clear() {
    samples_.clear();
    ends_.clear();
    classes_.clear();
    delta_.clear();
  }

  template <class Step>
  void push(Index i, const Step& step) {
    samples_.push_back(i);
    classes_.insert(classes_.end(), step.classes, step.classes + step.count);
    delta_.insert(delta_.end(), step.delta, step.delta + step.count);
    ends_.push_back(classes_.size());
  }

  template <class Visitor>
  void repeat(Visitor& visitor) const {
    std::size_t first = 0;
    for (std::size_t k = 0; k < samples_.size(); ++k) {
      visitor.repeat(samples_[k], {classes_.data() + first, delta_.data() + first, static_cast<Index>(ends_[k] - first)});
      first = ends_[k];
    }
  }

 private:
  std::vector<Index> samples_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> classes_;
  std::vector<double> delta_;
};

// One thread's samples, weights and steps.
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

  const LinearWeights<W>& weights() const { return visitor_.weights(); }
  void use(W* values) { visitor_.use(values); }
  const PassResult& result() const { return result_; }
  const StepLog& log(Index meeting) const { return log_[meeting % 2]; }

  void begin(bool all, const PassRule& rule) {
    const double total = all ? 0.0 : result_.total, gap = all ? 0.0 : result_.gap;
    result_ = {};
    result_.total = total;
    result_.gap = gap;
    all_ = all;
    rule_ = rule;
    if (all)
      list_all();
    else
      list_active();
    if (rule.shuffle) random_.shuffle(visits_.data(), static_cast<Index>(visits_.size()));
    at_ = 0;
  }

  // Makes so many visits at most, and keeps the steps where it `logs`; returns whether any samples are left.
  bool go_on(Index visits, Index meeting, bool logs) {
    written_ = logs ? &log_[meeting % 2] : nullptr;
    if (logs) written_->clear();
    const std::size_t end = std::min(visits_.size(), at_ + static_cast<std::size_t>(visits));
    for (; at_ < end; ++at_) visit(visits_[at_]);
    return at_ < visits_.size();
  }

  void repeat(const StepLog& log) { log.repeat(visitor_); }

 private:
  struct Waiting {
    std::uint8_t level = 0;  // how often the sample was found below the threshold since it was updated
    std::uint8_t left = 0;   // passes to wait
    std::uint8_t age = 1;    // passes since it was updated
    bool active = false;     // as the last pass over all samples found it
  };
  struct Last {  // when the sample was looked at last
    float psi = 0.0f, gain = 0.0f;
  };
  static constexpr int kLevels = 5, kMostAge = 255;
  static constexpr double kMostDue = 7.0;  // passes an updated sample waits

  void list_all() {
    visits_.resize(last_.size());
    std::iota(visits_.begin(), visits_.end(), Index{0});
    for (Waiting& waiting : waiting_) waiting.level = waiting.left = 0;
    std::fill(last_.begin(), last_.end(), Last{});
    listed_ = false;
  }

  // The active samples whose turn it is. The others sit this pass out, which brings them a pass nearer to it. Nothing
  // here branches on them: nobody could guess who waits.
  void list_active() {
    if (!listed_) {
      active_.clear();
      for (std::size_t k = 0; k < waiting_.size(); ++k)
        if (waiting_[k].active) active_.push_back(static_cast<Index>(k));
      listed_ = true;
    }
    result_.active = static_cast<Index>(active_.size());
    visits_.resize(active_.size());
    std::size_t count = 0;
    for (const Index k : active_) {
      Waiting& waiting = waiting_[static_cast<std::size_t>(k)];
      const bool small = static_cast<double>(last_[static_cast<std::size_t>(k)].psi) <= rule_.threshold;
      const bool sits = (waiting.left != 0) & ((waiting.level == 0) | small);
      waiting.left = static_cast<std::uint8_t>(waiting.left - sits);
      waiting.age = older(waiting.age, sits);
      visits_[count] = k;
      count += !sits;
    }
    visits_.resize(count);
  }

  static std::uint8_t older(std::uint8_t age, bool by_one) { return static_cast<std::uint8_t>(age + (by_one & (age < kMostAge))); }

  void visit(Index k) {
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
    Waiting& waiting = waiting_[static_cast<std::size_t>(k)];
    if (all_) result_.active += waiting.active = visitor_.undecided(i, rule_.margin);
    if (psi > rule_.threshold) {
      if (visitor_.step(i, rule_.relax)) {
        ++result_.updates;
        result_.change += visitor_.last_step().change;
        if (written_ != nullptr) written_->push(i, visitor_.last_step());
      }
      const double due = static_cast<double>(waiting.age) * rule_.threshold / psi;
      waiting = {0, static_cast<std::uint8_t>(std::min(due, kMostDue)), 1, waiting.active};
    } else {
      waiting.level = static_cast<std::uint8_t>(std::min<int>(waiting.level + 1, kLevels));
      waiting.left = static_cast<std::uint8_t>((1 << waiting.level) - 1);
      waiting.age = older(waiting.age, true);
    }
  }

  LinearVisitor<W> visitor_;
  Random random_;
  Index part_, parts_;
  std::vector<Index> active_, visits_;  // numbers k of samples k * parts + part; of this pass, in its order
  bool listed_ = false;                 // the active ones
  std::vector<Waiting> waiting_;
  std::vector<Last> last_;
  std::size_t at_ = 0;
  bool all_ = true;
  PassRule rule_{};
  PassResult result_;
  StepLog log_[2];
  StepLog* written_ = nullptr;  // one of them, where steps are kept
};

template <class W>
class LinearDescent {
 public:
  // Together: as many threads as the dual has parts, the weights given are the first one's. Else the parts take turns
  // on them.
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

  // Gives the threads' copies of the weights back. To be called before somebody else writes to the weights; the next
  // pass makes the copies anew.
  void rest() { copies_.clear(); }

  // From now on without threads.
  void part() {
    rest();
    together_ = false;
    for (auto& shard : shards_) shard->use(shards_[0]->weights().values);
  }

  // One pass over all samples, or over those that are still active.
  PassResult pass(bool all, const PassRule& rule) {
    for (auto& shard : shards_) shard->begin(all, rule);
    if (together_) {
      if (copies_.empty()) copy_weights();
      run_together();
    } else {
      for (bool left = true; left; interrupt_.poll(kWorkOfMeeting)) {
        left = false;
        for (auto& shard : shards_) left |= shard->go_on(kVisits, 0, false);
      }
    }
    PassResult all_of_them;
    for (const auto& shard : shards_) {
      const PassResult& part = shard->result();
      all_of_them.visits += part.visits;
      all_of_them.updates += part.updates;
      all_of_them.active += part.active;
      all_of_them.total += part.total;
      all_of_them.change += part.change;
      all_of_them.gap += part.gap;
      all_of_them.violation = worse_of(all_of_them.violation, part.violation);
    }
    return all_of_them;
  }

 private:
  void copy_weights() {
    const LinearWeights<W>& first = shards_[0]->weights();
    const Index size = first.features * first.stride;
    for (std::size_t t = 1; t < shards_.size(); ++t) {
      copies_.push_back(std::make_unique<AlignedBuffer<W>>());
      W* copy = copies_.back()->reserve(size);
      std::copy(first.values, first.values + size, copy);
      shards_[t]->use(copy);
    }
  }

  static constexpr Index kVisits = 32;  // of a thread between two meetings
  static constexpr Index kWorkOfMeeting = 100'000;  // about, for the interrupt's clock

  // A log is read by the others while its owner already writes the next one: the two take turns, and nobody can be
  // two meetings ahead. What goes wrong in a thread, or Ctrl-C, ends the pass for all at the next meeting.
  void run_together() {
#ifdef _OPENMP
    const int shards = static_cast<int>(shards_.size());
    std::atomic<int> unfinished[3] = {shards, shards, shards};
    std::atomic<Index> stop_at{std::numeric_limits<Index>::max()};
    std::exception_ptr error;
    const auto guarded = [&](Index meeting, auto work) {
      try {
        work();
      } catch (...) {
#pragma omp critical(multimargin_linear_error)
        if (!error) error = std::current_exception();
        stop_at = meeting;
      }
    };
#pragma omp parallel num_threads(shards)
    {
      const int t = omp_get_thread_num(), team = omp_get_num_threads();  // fewer than asked for, perhaps
      for (Index meeting = 0; stop_at >= meeting; ++meeting) {
        guarded(meeting, [&] {
          for (int s = t; s < shards; s += team)
            if (!shard(s).go_on(kVisits, meeting, true)) --unfinished[meeting % 3];
          if (t == 0) {
            unfinished[(meeting + 1) % 3] = shards;
            interrupt_.poll(kWorkOfMeeting);
          }
        });
#pragma omp barrier
        if (stop_at == meeting) break;
        guarded(meeting + 1, [&] {
          for (int s = t; s < shards; s += team)
            for (int other = 0; other < shards; ++other)
              if (other != s) shard(s).repeat(shard(other).log(meeting));
        });
        if (unfinished[meeting % 3] == 0) break;
      }
    }
    if (error) std::rethrow_exception(error);
#endif
  }

  LinearShard<W>& shard(int s) { return *shards_[static_cast<std::size_t>(s)]; }

  bool together_;
  std::vector<std::unique_ptr<AlignedBuffer<W>>> copies_;  // of the weights, for all threads but the first
  std::vector<std::unique_ptr<LinearShard<W>>> shards_;
  Interrupt interrupt_;
};

}  // namespace multimargin
