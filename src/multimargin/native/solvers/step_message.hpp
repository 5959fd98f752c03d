// The steps that a process of a shared descent tells the others: numbers of one fixed length, whatever it has to say.
#pragma once

#include <vector>

#include "base/reduce.hpp"

namespace multimargin::solvers {

// <G, d> and <d, K d> of some steps d.
struct Products {
  double slope = 0.0, curvature = 0.0;
};

// What all processes have said in one iteration.
struct Summary {
  double worst = 0.0;  // violation that was seen
  Index work = 0;      // of the process that has done most
  Index steps = 0;
  bool late = false;  // whether the time of one of them is over
  Products last;      // of the steps of the iteration before

  // The part of the last steps that lowers the dual most, at most 1; 1 if there were none.
  double best_length() const {
    const bool none = last.slope == 0.0 && last.curvature == 0.0;
    return none || -last.slope >= last.curvature ? 1.0 : -last.slope / last.curvature;
  }
};

// A change of one variable.
struct Change {
  Index sample, r;
  double by;
};

// The head {largest violation, work, late, steps, slope, curvature}, and the steps, each {sample, classes, class,
// change, class, change...}.
class StepMessage {
 public:
  // Room for `batch` steps of a few classes, and then for one of m: whether a step fits is asked before it is known how
  // many classes it changes.
  StepMessage(Index batch, Index m) : numbers_(kHead + step_length(m) + batch * step_length(kFewClasses)) {}

  Index length() const { return std::ssize(numbers_); }
  const double* data() const { return numbers_.data(); }
  Index steps() const { return steps_; }

  void clear() { end_ = kHead, steps_ = 0; }

  // Whether a step of so many classes fits.
  bool fits(Index classes) const { return end_ + step_length(classes) <= length(); }

  // Begins a step of the sample; add_class adds its changes.
  void add_step(Index sample) {
    step_ = end_;
    numbers_[end_++] = static_cast<double>(sample);
    numbers_[end_++] = 0.0;
    ++steps_;
  }
  void add_class(Index r, double change) {
    numbers_[step_ + 1] += 1.0;
    numbers_[end_++] = static_cast<double>(r);
    numbers_[end_++] = change;
  }

  void write_head(double worst, Index work, bool late, const Products& last) {
    numbers_[0] = worst;
    numbers_[1] = static_cast<double>(work);
    numbers_[2] = late ? 1.0 : 0.0;
    numbers_[3] = static_cast<double>(steps_);
    numbers_[4] = last.slope;
    numbers_[5] = last.curvature;
  }

  // Adds what a message says to the summary.
  static void summarise(const double* message, Summary& all) {
    all.worst = worse_of(all.worst, message[0]);
    all.work = std::max(all.work, static_cast<Index>(message[1]));
    all.late = all.late || message[2] > 0.0;
    all.steps += static_cast<Index>(message[3]);
    all.last.slope += message[4];
    all.last.curvature += message[5];
  }

  // Appends all changes of a message to the list.
  static void list_changes(const double* message, std::vector<Change>& list) {
    const double* at = message + kHead;
    for (auto left = static_cast<Index>(message[3]); left > 0; --left) {
      const auto sample = static_cast<Index>(at[0]), classes = static_cast<Index>(at[1]);
      at += 2;
      for (Index c = 0; c < classes; ++c, at += 2) list.push_back({sample, static_cast<Index>(at[0]), at[1]});
    }
  }

 private:
  static constexpr Index kHead = 6, kFewClasses = 3;
  static constexpr Index step_length(Index classes) { return 2 + 2 * classes; }

  std::vector<double> numbers_;
  Index end_ = kHead, step_ = kHead, steps_ = 0;
};

}  // namespace multimargin::solvers
