// The side of a visit that touches data and weights: scores of some classes, and steps of their weights.
//
// A slice has some of the classes, in whole cache lines where threads have one each: they write to no line that another
// one reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "linear_rows.hpp"
#include "linear_weights.hpp"

namespace multimargin {

struct LinearTask {
  const LinearRows* rows;
  Index m;
  const std::int32_t* y;
  const double* C;
  const double* norm;  // |x_i|^2
};

// What a visit adds to which w_r, in units of x_i.
struct LinearStep {
  const std::int32_t* classes;
  const double* delta;
  Index count;
};

template <class W>
class LinearSlice {
 public:
  // Of the classes first..last-1 (padded ones, last included where they are all).
  LinearSlice(const LinearTask& task, const LinearWeights<W>& all, Index first, Index last)
      : task_(task),
        weights_(all.slice(first, last)),
        first_(first),
        reader_(task.rows),
        base_(static_cast<std::size_t>(last - first)),
        spread_(base_.size()),
        delta_(base_.size() + 1),  // one more: what is not of the slice is written and not counted
        listed_(base_.size() + 1) {
    const Index real = std::clamp<Index>(task.m - first, 0, last - first);
    std::fill(base_.begin() + real, base_.end(), std::numeric_limits<W>::lowest());  // no classes
  }
  LinearSlice(const LinearTask& task, const LinearWeights<W>& all) : LinearSlice(task, all, 0, all.classes) {}

  // G_i = s_i - e_y of the slice's classes, at their places in `scores` of all; returns the largest.
  W score(Index i, W* scores) {
    const Index y = task_.y[i] - first_;
    const bool own = 0 <= y && y < weights_.classes;
    if (own) base_[static_cast<std::size_t>(y)] = W{-1};
    const W top = weights_.scores(reader_.read(i), base_.data(), scores + first_);
    if (own) base_[static_cast<std::size_t>(y)] = W{0};
    return top;
  }

  // w_r += delta_r x_i for the slice's classes.
  void add(Index i, const LinearStep& step) {
    std::int32_t* listed = listed_.data();
    W* delta = delta_.data();
    const Index first = first_, classes = weights_.classes;
    Index count = 0;
    for (Index c = 0; c < step.count; ++c) {
      const Index r = step.classes[c] - first;
      listed[count] = static_cast<std::int32_t>(r);
      delta[count] = static_cast<W>(step.delta[c]);
      count += 0 <= r && r < classes;
    }
    if (count > 0) weights_.add(reader_.read(i), listed, delta, count, spread_);
  }

  // Reads the row that is next, and asks memory for its weights.
  void announce(Index i) { weights_.prefetch(reader_.read_ahead(i)); }
  void foresee(Index i) const { reader_.foresee(i); }

 private:
  LinearTask task_;
  LinearWeights<W> weights_;
  Index first_;
  RowReader<W> reader_;
  std::vector<W> base_;  // -e_y while sample i is scored; what is no class is far below all
  std::vector<W> spread_, delta_;
  std::vector<std::int32_t> listed_;
};

}  // namespace multimargin
