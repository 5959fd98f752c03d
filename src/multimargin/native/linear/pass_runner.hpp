// Dual coordinate descent for linear machines (Blondel, Fujino & Ueda, Algorithm 1).
//
//     minimise  D(alpha) = 1/2 sum_r |w_r|^2 + 1/2 sum_i R_i |alpha_i|^2 - <T, alpha>,   alpha_i feasible,
//
// with w_r = sum_i alpha_ir x_i, and T, R and the feasible rows those of the machine (linear_form.hpp),
// given the rows, a feasible alpha and its w_r; one sample after the other, each by its exact (or relaxed) update. The
// result is in the dual and the weights.
//
// Threads: thread t owns a block of classes (their weights) and the samples i with i % threads = t. The threads process
// one batch of samples at a time:
//
//     all score the batch, each for its classes | each solves its own samples | all make steps, each for its classes
//
// and meet at the two bars. Only the reading of rows is duplicated. A sample misses only the steps of its own batch,
// and the result does not depend on which thread was faster. If samples are so alike that missing them slows
// convergence, the driver goes on without threads, and the parts take turns every few samples: whole parts one after
// the other needed eight times the visits.
#pragma once

#include <mutex>

#include "base/aligned_buffer.hpp"
#include "base/interrupt.hpp"
#include "base/spin_barrier.hpp"
#include "linear/class_worker.hpp"
#include "linear/exchange.hpp"
#include "linear/shard.hpp"
#include "linear/sparse_dual.hpp"

namespace multimargin::linear {

// The passes of one fit, whatever the machine and the type of the weights.
class PassRunner {
 public:
  using Word = std::int64_t;

  PassRunner() = default;
  virtual ~PassRunner() = default;
  PassRunner(const PassRunner&) = delete;
  PassRunner& operator=(const PassRunner&) = delete;

  // Goes on without threads.
  virtual void part() = 0;
  // Shares steps with other processes from now on.
  virtual void share() = 0;
  virtual bool shares() const = 0;
  // The steps since the last call, as a message; and makes those of a message.
  virtual std::vector<Word> steps(double stretch) = 0;
  virtual void make(const Word* message, Index length, double factor) = 0;
  // Begins a pass over all samples, or over those that are still active.
  virtual void begin(bool all, PassRule rule) = 0;
  // Visits the first of so many equal pieces of what is left. The result is that of the pass so far.
  virtual PassResult go_on(Index pieces) = 0;
};

template <class W, class Machine>
class MachinePasses final : public PassRunner {
 public:
  // If together, one thread per part of the dual and block of the weights. Else the parts take turns on one thread.
  MachinePasses(const LabelledRows& task, const LinearWeights<W>& weights, SparseDual* dual, const UpdateRule& update,
                std::uint64_t seed, bool together)
      : together_(together && has_openmp() && weights.blocks > 1), stride_(weights.classes()), task_(task),
        dual_(dual), blocks_(task, weights) {
    const int parts = dual->parts();
    for (int t = 0; t < parts; ++t) {
      const std::uint64_t own_seed = seed + 2 * static_cast<std::uint64_t>(t);
      shards_.push_back(std::make_unique<LinearShard<W, Machine>>(task, dual, update, own_seed, t));
    }
    scores_.reserve(batch() * stride_);
    tops_.resize(weights.blocks * batch());
  }

  void part() override { together_ = false; }

  void share() override {
    if (!exchange_) exchange_ = std::make_unique<StepExchange<W>>(task_, &blocks_);
  }
  bool shares() const override { return exchange_ != nullptr; }

  std::vector<Word> steps(double stretch) override {
    std::vector<Word> message;
    for (auto& shard : shards_) {
      exchange_->tell(shard->made(), stretch, message);
      shard->made().clear();
    }
    return message;
  }
  void make(const Word* message, Index length, double factor) override {
    exchange_->make(message, length, factor);
  }

  void begin(bool all, PassRule rule) override {
    rule.notes = exchange_ != nullptr;
    for (auto& shard : shards_) shard->begin(all, rule);
    if (all) {
      const double most = dual_->largest();
      for (auto& shard : shards_) shard->expect(most);
    }
  }

  PassResult go_on(Index pieces) override {
    for (auto& shard : shards_) shard->take_piece(pieces);
    if (together_) {
      run_together();
    } else {
      for (bool left = true; left; interrupt_.poll(kWorkOfTurn)) {
        left = false;
        for (auto& shard : shards_) left |= shard->go_on(kTurn, blocks_, scores_.data());
      }
    }
    PassResult sum;
    for (const auto& shard : shards_) sum += shard->result();
    return sum;
  }

 private:
  static constexpr Index kTurn = 32;             // visits per turn of a part
  static constexpr Index kBatch = 8;             // visits of a thread between two meetings
  static constexpr Index kWorkOfTurn = 100'000;  // approximately, for Interrupt

  Index batch() const { return static_cast<Index>(shards_.size()) * kBatch; }

  // Block b makes the steps of the last batch and scores the next one. Returns whether there are any samples.
  bool prepare(Index b) {
    ClassWorker<W>& block = blocks_[b];
    for (const auto& shard : shards_) shard->log().make(block);
    bool any = false;
    for (Index p = 0; p < static_cast<Index>(shards_.size()); ++p) {
      const LinearShard<W, Machine>& shard = *shards_[p];
      const Index visits = shard.left(kBatch);
      any = any || visits > 0;
      for (Index k = 0; k < visits; ++k) {
        const Index place = p * kBatch + k;
        const W top = block.score(shard.upcoming(k), scores_.data() + place * stride_);
        if (k + 1 < visits) block.announce(shard.upcoming(k + 1));
        if (shard.left(k + 4) == k + 4) block.foresee(shard.upcoming(k + 3));
        tops_[b * batch() + place] = top;
      }
    }
    return any;
  }

  // Solves the samples of part p in the batch.
  void settle(Index p) {
    LinearShard<W, Machine>& shard = *shards_[p];
    const Index visits = shard.left(kBatch), first = p * kBatch;
    W tops[kBatch];
    for (Index k = 0; k < visits; ++k) {
      tops[k] = tops_[first + k];
      for (Index b = 1; b < blocks_.size(); ++b) tops[k] = std::max(tops[k], tops_[b * batch() + first + k]);
    }
    shard.settle(visits, scores_.data() + first * stride_, stride_, tops);
  }

  // An exception in a thread, or Ctrl-C, ends the pass of all threads at the next meeting.
  void run_together() {
    for (auto& shard : shards_) shard->forget_steps();
    std::atomic<Index> stop_at{std::numeric_limits<Index>::max()};
    std::optional<SpinBarrier> barrier;
    std::once_flag made;
    in_team(static_cast<int>(blocks_.size()), [&](Index t, int team) {  // may be fewer than asked for
      std::call_once(made, [&] { barrier.emplace(team); });
      std::exception_ptr error;
      Index meeting = 0;
      const auto do_and_meet = [&](auto work) {  // returns whether to go on
        try {
          work();
        } catch (...) {
          error = std::current_exception();
          stop_at = meeting;  // the same one for all threads that fail
        }
        barrier->wait();
        return stop_at > meeting++;
      };
      for (bool any = true; any;) {
        const bool scored = do_and_meet([&] {
          any = false;
          for (Index b = t; b < blocks_.size(); b += team) any |= prepare(b);
        });
        if (!scored || !any) break;
        const bool solved = do_and_meet([&] {
          for (Index p = t; p < static_cast<Index>(shards_.size()); p += team) settle(p);
          if (t == 0) interrupt_.poll(kWorkOfTurn);
        });
        if (!solved) break;
      }
      if (error) std::rethrow_exception(error);
    });
  }

  bool together_;
  Index stride_;  // of scores_
  LabelledRows task_;
  const SparseDual* dual_;
  ClassWorkers<W> blocks_;
  std::vector<std::unique_ptr<LinearShard<W, Machine>>> shards_;
  AlignedBuffer<W> scores_;  // of a batch
  std::vector<W> tops_;      // of a batch: the largest score of each block
  Interrupt interrupt_;
  std::unique_ptr<StepExchange<W>> exchange_;  // if there are other processes
};

}  // namespace multimargin::linear
