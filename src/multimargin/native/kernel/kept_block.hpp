// The kernel block K_WW of a working set that grows: new samples are added from their full kernel rows.
#pragma once

#include "base/row_loops.hpp"

namespace multimargin::kernel {

// Moves rows 0..rows-1 of `columns` values each from old_stride to new_stride >= old_stride apart, in place. The last
// rows go first. Those whose new places lie behind all rows that have not moved yet, first..last-1, go together.
template <class T>
void widen_block(T* K, Index rows, Index columns, Index old_stride, Index new_stride, int n_threads) {
  for (Index last = rows; last > 1;) {
    const Index end = (last - 1) * old_stride + columns;  // of the rows that have not moved yet
    const Index first = std::min((end + new_stride - 1) / new_stride, last - 1), count = last - first;
    const int threads = worthwhile_threads(n_threads, static_cast<double>(count) * static_cast<double>(columns));
    parallel_ranges(count, 8, threads, [&](Index from, Index to) {
      for (Index i = last - 1 - from; i > last - 1 - to; --i)
        std::memmove(K + i * new_stride, K + i * old_stride, columns * sizeof(T));
    });
    last = first;
  }
}

// Keeps only the rows and columns `kept` (ascending) of K, in place.
template <class T>
void retain_block(T* K, Index stride, const Index* kept, Index count) {
  for (Index i = 0; i < count; ++i) gather_row(K + kept[i] * stride, kept, count, K + i * stride);
}

// K[p, j] = K[j, p] = rows[slots[p - old], members[j]] for the new members p = old..count-1 and all j.
// K and rows have rows K_stride and row_stride apart. K may have fixed-point values, made from floating-point rows, or
// the other way round.
template <class S, class T>
void extend_block(S* K, Index K_stride, Index old, const T* rows, Index row_stride, const Index* slots,
                  const Index* members, Index count, int n_threads) {
  const Index added = count - old;
  const int threads = worthwhile_threads(n_threads, 4.0 * static_cast<double>(added) * static_cast<double>(count));
  parallel_ranges(added, 1, threads, [&](Index p, Index) {
    gather_row(rows + slots[p] * row_stride, members, count, K + (old + p) * K_stride);
  });
  constexpr Index tile = 64;  // of the transposed part, so that whole cache lines are read and written
  parallel_ranges(old, tile, threads, [&](Index begin, Index end) {
    for (Index first = old; first < count; first += tile)
      for (Index i = begin; i < end; ++i)
        for (Index p = first; p < std::min(first + tile, count); ++p) K[i * K_stride + p] = K[p * K_stride + i];
  });
}

}  // namespace multimargin::kernel
