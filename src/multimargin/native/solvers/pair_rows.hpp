// Kernel rows of a block for pair descent, which needs few of them.
#pragma once

#include "base/row_loops.hpp"
#include "kernel/working_set_kernel.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace kernel;

// Where missing kernel rows of a block come from.
template <class T>
struct PairSource {
  const WorkingSetKernel* kernel = nullptr;  // computes any of them; null if all rows are there
  const T* store = nullptr;                  // values against all samples, for those with slot >= 0; or null
  Index store_stride = 0;
  const Index* slots = nullptr;    // (q,)
  const Index* columns = nullptr;  // (q,) of the store
};

// Kernel rows of a block of q samples: all of them, row k at K + k * stride, or some, each at one of `room` places. A
// missing row is copied or computed. If no place is free, it replaces a row that was not used lately (the clock
// algorithm).
template <class T>
class PairRows {
 public:
  static constexpr Index kLeastRoom = 64;  // places, or as many as there are rows

  PairRows(T* K, Index stride, Index room, Index q, const double* diag, PairSource<T> source)
      : K_(K), stride_(stride), room_(room), q_(q), diag_(diag), source_(source) {
    if (!source.kernel) return;
    places_.assign(q, -1);
    owners_.assign(room, -1);
    recent_.assign(room, 0);
  }

  const T* at(Index k) {
    if (places_.empty()) return K_ + k * stride_;
    recent_[places_[k]] = 1;
    return K_ + places_[k] * stride_;
  }
  bool is_there(Index k) const { return places_.empty() || places_[k] >= 0; }
  bool is_stored(Index k) const { return source_.store && source_.slots[k] >= 0; }

  // Neither replaces the row of sample `pinned`.
  void copy(Index k, Index pinned) {
    T* row = K_ + take_place(k, pinned) * stride_;
    gather_row(source_.store + source_.slots[k] * source_.store_stride, source_.columns, q_, row);
    row[k] = static_cast<T>(diag_[k]);
  }
  void compute(const std::vector<Index>& which, Index pinned) {
    taken_.clear();
    for (Index k : which) taken_.push_back(take_place(k, pinned));
    source_.kernel->rows(which.data(), static_cast<Index>(which.size()), K_, stride_, taken_.data());
    for (Index k : which) K_[places_[k] * stride_ + k] = static_cast<T>(diag_[k]);
  }

 private:
  Index take_place(Index k, Index pinned) {
    for (;; hand_ = (hand_ + 1) % room_) {
      const Index owner = owners_[hand_];
      if (owner >= 0 && (owner == pinned || std::exchange(recent_[hand_], 0))) continue;
      if (owner >= 0) places_[owner] = -1;
      owners_[hand_] = k;
      recent_[hand_] = 1;
      places_[k] = hand_;
      const Index place = hand_;
      hand_ = (hand_ + 1) % room_;
      return place;
    }
  }

  T* K_;
  Index stride_, room_, q_;
  const double* diag_;
  PairSource<T> source_;
  Index hand_ = 0;
  std::vector<Index> places_, owners_, taken_;  // place of each sample or -1; sample of each place
  std::vector<char> recent_;                    // used since the clock's hand passed
};

}  // namespace multimargin::solvers
