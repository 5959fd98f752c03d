// The part of a visit that uses data and weights: scores and weight steps, of a block of classes or of all classes.
#pragma once

#include "linear/rows.hpp"
#include "linear/weights.hpp"

namespace multimargin::linear {

struct LabelledRows {
  const LinearRows* rows;
  Index m;
  const std::int32_t* y;
  const double* C;
  const double* norm;  // |x_i|^2
  double other;        // T_ir for r != y_i; of the label T is 1 (linear_form.hpp)
};

// The step of a visit: w_{classes[c]} += delta[c] x_i.
struct LinearStep {
  const std::int32_t* classes;
  const double* delta;
  Index count;
};

template <class W>
class ClassWorker {
 public:
  ClassWorker(const LabelledRows& task, const LinearWeights<W>& all, Index b)
      : task_(task), weights_(all.block(b)), first_(b * all.width), reader_(task.rows),
        near_(all.width <= 64 && all.features * all.width * static_cast<Index>(sizeof(W)) <= kNear), base_(all.width),
        spread_(base_.size()), delta_(base_.size() + 1),  // one more, which takes the classes of other blocks
        listed_(base_.size() + 1) {
    const Index real = std::clamp<Index>(task.m - first_, 0, all.width);
    std::fill_n(base_.begin(), real, static_cast<W>(-task.other));
    std::fill(base_.begin() + real, base_.end(), std::numeric_limits<W>::lowest());  // padding
  }

  // Writes s_i - T_i of the block's classes to their places among all in `scores`; returns the largest.
  W score(Index i, W* scores) {
    const W of_label = static_cast<W>(task_.other - 1.0);
    return weights_.scores(reader_.read(i), base_.data(), task_.y[i] - first_, of_label, scores + first_);
  }

  // w_r += delta_r x_i for the block's classes.
  void add(Index i, const LinearStep& step) { add(reader_.read(i), step); }
  void add(const LinearRow<W>& row, const LinearStep& step) {
    std::int32_t* listed = listed_.data();
    W* delta = delta_.data();
    const Index first = first_, classes = weights_.stride;
    Index count = 0;
    for (Index c = 0; c < step.count; ++c) {
      const Index r = step.classes[c] - first;
      listed[count] = static_cast<std::int32_t>(r);
      delta[count] = static_cast<W>(step.delta[c]);
      count += 0 <= r && r < classes;
    }
    if (count > 0) weights_.add(row, listed, delta, count, near_, spread_);
  }

  // Reads the next row and prefetches its weights.
  void announce(Index i) {
    const LinearRow<W>& row = reader_.read_ahead(i);
    if (!near_) weights_.prefetch(row);
  }
  void foresee(Index i) const { reader_.foresee(i); }

 private:
  static constexpr Index kNear = 1 << 15;  // bytes

  LabelledRows task_;
  WeightBlock<W> weights_;
  Index first_;
  RowReader<W> reader_;
  bool near_;            // whether the weights stay in the first-level cache
  std::vector<W> base_;  // -T_ir of r != y_i; padding is far below all classes
  std::vector<W> spread_, delta_;
  std::vector<std::int32_t> listed_;
};

// The same for all classes, block after block.
template <class W>
class ClassWorkers {
 public:
  ClassWorkers(const LabelledRows& task, const LinearWeights<W>& weights) {
    for (Index b = 0; b < weights.blocks; ++b) blocks_.emplace_back(task, weights, b);
  }

  Index size() const { return static_cast<Index>(blocks_.size()); }
  ClassWorker<W>& operator[](Index b) { return blocks_[b]; }

  W score(Index i, W* scores) {
    W top = std::numeric_limits<W>::lowest();
    for (ClassWorker<W>& block : blocks_) top = std::max(top, block.score(i, scores));
    return top;
  }
  void add(Index i, const LinearStep& step) {
    for (ClassWorker<W>& block : blocks_) block.add(i, step);
  }
  void add(const LinearRow<W>& row, const LinearStep& step) {
    for (ClassWorker<W>& block : blocks_) block.add(row, step);
  }
  void announce(Index i) {
    for (ClassWorker<W>& block : blocks_) block.announce(i);
  }
  void foresee(Index i) const { blocks_.front().foresee(i); }

 private:
  std::vector<ClassWorker<W>> blocks_;
};

}  // namespace multimargin::linear
