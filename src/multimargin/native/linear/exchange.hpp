// What one process of a team tells the others about its steps: the rows of the samples that moved, and how far.
//
// A step is w_r += delta_r x_i for a few classes r. A message has the steps of a round one after the other, each as
// (non-zeros, classes), delta, values, columns, classes, filled up to whole words. To make the steps of a message
// costs a process as much as to make its own.
#pragma once

#include <cstring>

#include "linear/class_worker.hpp"
#include "linear/shard.hpp"

namespace multimargin::linear {

template <class W>
class StepExchange {
 public:
  using Word = std::int64_t;

  StepExchange(const LabelledRows& task, ClassWorkers<W>* blocks) : task_(task), blocks_(blocks) {
    if (task.rows->features() > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("processes can share weights of at most 2^31 - 1 features");
    row_.reserve(task.rows->longest());
  }

  // Adds the steps of a log to a message, each over `stretch`.
  void tell(const StepLog& log, double stretch, std::vector<Word>& message) {
    log.each([&](Index i, const LinearStep& step) {
      task_.rows->load(i, row_);
      row_.with_terms([&](const auto& terms) {
        const std::int32_t head[2] = {static_cast<std::int32_t>(terms.count), static_cast<std::int32_t>(step.count)};
        const std::size_t first = message.size();
        message.resize(first + words(terms.count, step.count));
        char* at = reinterpret_cast<char*>(message.data() + first);
        at = put(at, head, 2);
        for (Index c = 0; c < step.count; ++c) {
          const double delta = step.delta[c] / stretch;
          at = put(at, &delta, 1);
        }
        at = put(at, terms.values, terms.count);
        for (Index k = 0; k < terms.count; ++k) {
          const auto column = static_cast<std::int32_t>(terms.columns[k]);
          at = put(at, &column, 1);
        }
        put(at, step.classes, step.count);
      });
    });
  }

  // Makes the steps of a message, `factor` times.
  void make(const Word* message, Index length, double factor) {
    for (Index at = 0; at < length;) {
      const auto* head = reinterpret_cast<const std::int32_t*>(message + at);
      const Index count = head[0], classes = head[1], size = words(count, classes);
      if (count < 0 || classes < 0 || at + size > length) throw std::invalid_argument("a message of steps is cut off");
      const auto* delta = reinterpret_cast<const double*>(message + at + 1);
      const auto* values = reinterpret_cast<const W*>(delta + classes);
      const auto* columns = reinterpret_cast<const std::int32_t*>(values + count);
      check(columns, count, task_.rows->features());
      check(columns + count, classes, task_.m);
      delta_.assign(delta, delta + classes);
      for (double& change : delta_) change *= factor;
      row_.refer(values, columns, count);
      row_.add_constant(task_.rows->features() - 1, task_.rows->constant());
      blocks_->add(row_, {columns + count, delta_.data(), classes});
      at += size;
    }
  }

 private:
  static Index words(Index count, Index classes) {
    const Index bytes = 8 + 8 * classes + static_cast<Index>(sizeof(W) + 4) * count + 4 * classes;
    return (bytes + 7) / 8;
  }
  template <class T>
  static char* put(char* at, const T* from, Index count) {
    std::memcpy(at, from, sizeof(T) * static_cast<std::size_t>(count));
    return at + sizeof(T) * static_cast<std::size_t>(count);
  }
  static void check(const std::int32_t* numbers, Index count, Index end) {
    for (Index k = 0; k < count; ++k)
      if (numbers[k] < 0 || numbers[k] >= end) throw std::invalid_argument("a message of steps is of another problem");
  }

  LabelledRows task_;
  ClassWorkers<W>* blocks_;
  LinearRow<W> row_;
  std::vector<double> delta_;
};

}  // namespace multimargin::linear
