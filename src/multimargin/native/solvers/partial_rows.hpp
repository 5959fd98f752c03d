// Kernel rows of a block against the samples of one process, each completed when it is needed.
#pragma once

#include "base/row_loops.hpp"

namespace multimargin::solvers {

// K[i, j] = store[slots[i], columns[j]], of which the first known[i] values of row i are there. The diagonal is exact.
// T may be fixed-point numbers, made from the store's floating-point ones.
template <class T, class S>
class PartialRows {
 public:
  // `places` and `diag` are the rows of the columns' own samples, and their diagonal entries.
  PartialRows(T* K, Index stride, Index rows, Index width, Index* known, const S* store, Index store_stride,
              const Index* slots, const Index* columns, const Index* places, const double* diag)
      : K_(K), stride_(stride), width_(width), known_(known), store_(store), store_stride_(store_stride),
        slots_(slots), columns_(columns, columns + width), diag_(diag), column_of_(rows, -1) {
    for (Index j = 0; j < width; ++j) column_of_[places[j]] = static_cast<std::int32_t>(j);
  }

  // Makes row i complete.
  void complete(Index i) {
    const Index known = known_[i];
    if (known == width_) return;
    T* row = K_ + i * stride_;
    gather_row(store_ + slots_[i] * store_stride_, columns_.data() + known, width_ - known, row + known);
    if (column_of_[i] >= known) row[column_of_[i]] = to_stored<T>(static_cast<Value>(diag_[column_of_[i]]));
    known_[i] = width_;
  }

 private:
  using Value = std::conditional_t<std::is_same_v<S, Fixed16>, float, S>;

  T* K_;
  Index stride_, width_;
  Index* known_;
  const S* store_;
  Index store_stride_;
  const Index* slots_;
  std::vector<std::int32_t> columns_;  // short numbers: the list is read as often as the row
  const double* diag_;
  std::vector<std::int32_t> column_of_;  // the column of each sample of the block, -1 if another process has it
};

}  // namespace multimargin::solvers
