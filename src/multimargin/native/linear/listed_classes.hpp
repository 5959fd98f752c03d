// The classes of one sample that a step may change, with G and alpha. The label comes first.
#pragma once

#include <bit>

#include "linear/at_least.hpp"
#include "linear/class_worker.hpp"
#include "linear/sparse_dual.hpp"

namespace multimargin::linear {

template <class W>
class ListedClasses {
 public:
  using Entry = SparseDual::Entry;

  // No |alpha_ir| is above `most`. If that is far below the costs, it is the scale of what counts as zero.
  void expect(double most) { most_ = most; }

 protected:
  ListedClasses(const LabelledRows& task, SparseDual* dual)
      : task_(task), dual_(dual), G_(task.m + 2), alpha_(2 * G_.size()), classes_(G_.size()),
        listed_((G_.size() + 63) / 64) {}

  double G(Index r) const { return static_cast<double>(scores_[r]); }

  // Adds a class of the current sample; returns its G.
  MULTIMARGIN_INLINE double list(Index c, Index r, double alpha) {
    const double score = G(r);
    classes_[c] = static_cast<std::int32_t>(r);
    G_[c] = score;
    alpha_[c] = alpha;
    listed_[r / 64] |= std::uint64_t{1} << (r % 64);
    return score;
  }

  // Fills the places after the first `count` classes, up to `full`, with the first class, without weight.
  MULTIMARGIN_INLINE void pad(Index count, Index full) {
    for (Index c = count; c < full; ++c) classes_[c] = classes_[0], G_[c] = G_[0], alpha_[c] = 0.0;
  }

  // Adds, after the first `count` classes, all others whose G is at least `floor`; returns how many are listed then.
  MULTIMARGIN_INLINE Index list_from(W floor, Index count) {
    for (Index first = 0; first < task_.m; first += 64) {
      std::uint64_t& listed = listed_[first / 64];
      const Index left = std::min<Index>(task_.m - first, 64), rest = (left + 7) / 8 * 8;
      const std::uint64_t classes = ~std::uint64_t{0} >> (64 - left);  // if scores overflow, padding reaches the floor
      for (std::uint64_t bits = at_least(scores_ + first, rest, floor) & classes & ~listed; bits != 0; bits &= bits - 1)
        list(count++, first + std::countr_zero(bits), 0.0);
      listed = 0;
    }
    return count;
  }

  // How many classes have a G of at least `floor`.
  Index number_from(double floor) const {
    Index number = 0;
    for (Index r = 0; r < task_.m; ++r) number += G(r) >= floor;
    return number;
  }

  LabelledRows task_;
  SparseDual* dual_;
  const W* scores_ = nullptr;  // of the current sample, padded to a multiple of 8 with values far below all others
  double most_ = kInfinity;
  std::vector<double> G_, alpha_;  // of the listed classes; alpha_ has room for the new values too
  std::vector<std::int32_t> classes_;

 private:
  std::vector<std::uint64_t> listed_;  // one bit per class
};

}  // namespace multimargin::linear
