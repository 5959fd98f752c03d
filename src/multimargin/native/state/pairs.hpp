// Which entries of the gradient of one-vs-rest must be computed again: pairs (sample, class), each by its slack. The
// slack of a pair is gamma = Y G when it was computed last: how much G must change before the pair violates, if its
// coefficient is zero.
#pragma once

#include "base/platform.hpp"

namespace multimargin::state {

struct Pairs {
  Index n, m;
  double* slack;   // (n, m)
  double* due_at;  // (n, m), the drift at which a pair must be computed again
  bool* due;       // (n, m), whether it must now
  bool* has_due;   // (n,), whether a sample has a due pair
};

// Coefficients (n, m), what they were at the last exact gradient, and whether those of a sample have changed.
struct Change {
  const double *alpha, *start;
  bool* has_moved;  // (n,)
};

// What it takes to compute the due pairs.
struct PairCounts {
  Index moved = 0, rows = 0;  // samples with alpha != start; samples with a due pair
  double values = 0.0;        // kernel values, if every class computes its own
};

// Marks the due pairs of the samples that take part: those with weight, with a slack of at most `worst`, or whose time
// has come. If takes_part is null, the marks stay as they are.
MULTIMARGIN_CLONES inline PairCounts find_due(const Pairs& p, const Change& change, const bool* takes_part,
                                              double drift, double worst) {
  PairCounts counts;
  std::vector<Index> moved(p.m, 0), due(p.m, 0);
  for (Index i = 0; i < p.n; ++i) {
    bool any_moved = false, any_due = false;
    for (Index r = 0; r < p.m; ++r) {
      const Index at = i * p.m + r;
      const bool has_moved = change.alpha[at] != change.start[at];
      if (takes_part)
        p.due[at] = takes_part[i] & ((p.due_at[at] < drift) | (p.slack[at] <= worst) | (change.alpha[at] != 0.0));
      moved[r] += has_moved, due[r] += p.due[at];
      any_moved |= has_moved, any_due |= p.due[at];
    }
    change.has_moved[i] = any_moved, p.has_due[i] = any_due;
    counts.moved += any_moved, counts.rows += any_due;
  }
  for (Index r = 0; r < p.m; ++r) counts.values += static_cast<double>(moved[r]) * static_cast<double>(due[r]);
  return counts;
}

// Takes over the slack of the due pairs, which have just been computed. The changes of those of samples that were not
// solved for tell how far others may have drifted: as far as all but the share `rest` of these changed at most. Returns
// the new drift.
inline double measure_due(const Pairs& p, const double* G, const std::int32_t* y, const bool* solved, double drift,
                          double rest) {
  std::vector<float> changes;
  for (Index i = 0; i < p.n; ++i)
    for (Index r = 0; r < p.m && p.has_due[i]; ++r) {
      const Index at = i * p.m + r;
      if (!p.due[at]) continue;
      const double gamma = r == y[i] ? G[at] : -G[at];
      const auto change = static_cast<float>(std::abs(gamma - p.slack[at]));
      if (!solved[i] && change <= std::numeric_limits<float>::max()) changes.push_back(change);
      p.slack[at] = gamma;
    }
  if (!changes.empty()) {
    const auto above = static_cast<Index>(rest * static_cast<double>(changes.size()));
    const auto largest = changes.end() - 1 - above;
    std::nth_element(changes.begin(), largest, changes.end());
    drift += *largest;
  }
  for (Index i = 0; i < p.n; ++i)
    for (Index at = i * p.m; at < (i + 1) * p.m && p.has_due[i]; ++at)
      if (p.due[at]) p.due_at[at] = p.slack[at] + drift;
  return drift;
}

}  // namespace multimargin::state
