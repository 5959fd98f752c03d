// Violation and gain of many rows, which the working-set rules and the stopping test use; and how far rows with
// alpha = 0 are from a violation.
#pragma once

#include "base/platform.hpp"

namespace multimargin::state {

struct MeasureArrays {
  Index m;
  const double* G;      // (n, m)
  const double* alpha;  // (n, m)
  const std::int32_t* y;
  const double* C;
  double* violation;  // (n,), written at the chosen rows
  double* gain;       // (n,), likewise
};

// Rows ids[begin..end), or begin..end themselves if ids is null.
template <class Machine>
MULTIMARGIN_CLONES void measure_rows(const MeasureArrays& a, const Index* ids, Index begin, Index end) {
  for (Index k = begin; k < end; ++k) {
    const Index i = ids ? ids[k] : k;
    const auto row = Machine::measure(a.G + i * a.m, a.alpha + i * a.m, a.y[i], a.C[i], a.m);
    a.violation[i] = row.violation;
    a.gain[i] = row.gain;
  }
}

// found[i] = whether one of the m values of row i is not zero.
MULTIMARGIN_CLONES inline void find_rows(const double* A, Index n, Index m, bool* found) {
  for (Index i = 0; i < n; ++i) {
    int any = 0;
    for (Index r = 0; r < m; ++r) any |= A[i * m + r] != 0.0;
    found[i] = any != 0;
  }
}

// Rows that a thread looks at in one go, and threads that are worth it: a look at one value of a row is mostly
// branches, which take the time of several multiply-adds.
inline constexpr Index kRange = 512;
inline int looking_threads(int n_threads, Index count, Index m) {
  constexpr double flops = 8.0;
  return worthwhile_threads(n_threads, flops * static_cast<double>(count) * static_cast<double>(m));
}

// The same for count rows, in parallel if there is enough work.
template <class Machine>
void measure(const MeasureArrays& a, const Index* ids, Index count, int n_threads) {
  parallel_ranges(count, kRange, looking_threads(n_threads, count, a.m),
                  [&](Index begin, Index end) { measure_rows<Machine>(a, ids, begin, end); });
}

// slack[i] of the rows ids[begin..end), as Machine::slack defines it for alpha = 0.
template <class Machine>
MULTIMARGIN_CLONES void slack_of_rows(const double* G, const std::int32_t* y, Index m, const Index* ids, Index begin,
                                      Index end, double* slack) {
  for (Index k = begin; k < end; ++k) slack[ids[k]] = Machine::slack(G + ids[k] * m, y[ids[k]], m);
}

// The same for count rows, in parallel if there is enough work.
template <class Machine>
void slack(const double* G, const std::int32_t* y, Index m, const Index* ids, Index count, double* slack,
           int n_threads) {
  parallel_ranges(count, kRange, looking_threads(n_threads, count, m), [&](Index begin, Index end) {
    slack_of_rows<Machine>(G, y, m, ids, begin, end, slack);
  });
}

}  // namespace multimargin::state
