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

// The same for count rows, in parallel if there is enough work.
template <class Machine>
void measure(const MeasureArrays& a, const Index* ids, Index count, int n_threads) {
  const int threads = worthwhile_threads(n_threads, static_cast<double>(count) * static_cast<double>(a.m));
  parallel_ranges(count, 2048, threads, [&](Index begin, Index end) { measure_rows<Machine>(a, ids, begin, end); });
}

// slack[i] of the rows ids, as Machine::slack defines it for alpha = 0.
template <class Machine>
MULTIMARGIN_CLONES void slack_of_rows(const double* G, const std::int32_t* y, Index m, const Index* ids, Index count,
                                      double* slack) {
  for (Index k = 0; k < count; ++k) slack[ids[k]] = Machine::slack(G + ids[k] * m, y[ids[k]], m);
}

}  // namespace multimargin::state
