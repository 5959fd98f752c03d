// A point of a proximal step of the linear machine (Python's linear/proximal.py):
//
//     alpha(W)_i = P(centre_i - t_i (W' x_i + R_i centre_i - T_i)),    W(alpha) = sum_i x_i alpha_i',
//
// with P the projection onto the machine's feasible rows. The scores of a few samples are made and projected while they
// are in the cache; no array of scores exists.
#pragma once

#include "linear/problem.hpp"

namespace multimargin::linear {

// Samples first..last-1 of a step; centre and alpha are (n, m).
template <class Machine>
class ProximalRows {
 public:
  ProximalRows(const LabelledRows& task, const LinearWeights<double>& weights)
      : task_(task), blocks_(task, weights), machine_(task.m, Machine::find_update("sort"), 0),
        scores_(weights.classes()), G_(kRows * task.m), work_(2 * kRows * task.m) {}

  void project(const double* centre, const double* t, Index first, Index last, double* alpha) {
    const Index m = task_.m;
    for (Index i = first; i < last; i += kRows) {
      const Index count = std::min(kRows, last - i);
      const double* from = centre + i * m;
      double* to = alpha + i * m;
      for (Index l = 0; l < count; ++l) gradient(i + l, from + l * m, G_.data() + l * m);
      std::copy_n(from, count * m, to);
      project(i, count, t + i, to);
    }
  }

 private:
  static constexpr Index kTogether = kRowsTogether<Machine>, kRows = std::max<Index>(kTogether, 1);

  void gradient(Index i, const double* alpha, double* G) {
    blocks_.score(i, scores_.data());
    const double ridge = LinearForm<Machine>::ridge(task_.C[i]);
    for (Index r = 0; r < task_.m; ++r) G[r] = scores_[r] + ridge * alpha[r];
  }

  void project(Index i, Index count, const double* t, double* alpha) {
    const Index m = task_.m;
    const std::int32_t* y = task_.y + i;
    const double* C = task_.C + i;
    if constexpr (kTogether > 0)
      if (count == kTogether) return Machine::project_together(G_.data(), t, y, C, m, alpha, work_.data());
    for (Index l = 0; l < count; ++l) machine_.project(G_.data() + l * m, t[l], y[l], C[l], m, alpha + l * m);
  }

  LabelledRows task_;
  ClassWorkers<double> blocks_;
  Machine machine_;
  std::vector<double> scores_, G_, work_;  // of one sample; of those that are projected together
};

// Writes alpha(W).
inline void proximal_point(const LinearProblem& problem, const LinearWeights<double>& weights, const double* centre,
                           const double* t, double* alpha) {
  constexpr Index kSamples = 512;  // per task
  const Index n = problem.rows().rows();
  problem.with_form([&]<class Machine>(std::type_identity<Machine>) {
    parallel_tasks((n + kSamples - 1) / kSamples, problem.n_threads(), [&] {
      return [&, rows = std::make_shared<ProximalRows<Machine>>(problem.task(), weights)](Index task) {
        rows->project(centre, t, task * kSamples, std::min((task + 1) * kSamples, n), alpha);
      };
    });
  });
}

// Writes W(alpha). Every thread has its own classes, in whole cache lines.
inline void weights_of(const LinearProblem& problem, const double* alpha, const LinearWeights<double>& weights) {
  const Index n = problem.rows().rows(), m = problem.m();
  const Index parts = std::min<Index>(problem.n_threads(), weights.width / kClassLanes);
  const Index width = (weights.width + parts * kClassLanes - 1) / (parts * kClassLanes) * kClassLanes;
  std::fill_n(weights.values, weights.features * weights.width, 0.0);
  parallel_tasks(parts, problem.n_threads(), [&] {
    return [&, classes = std::vector<std::int32_t>(m), values = std::vector<double>(m),
            row = problem.row()](Index part) mutable {
      const Index first = part * width, last = std::min(first + width, m);
      for (Index i = 0; i < n; ++i) {
        Index count = 0;
        for (Index r = first; r < last; ++r) {
          classes[count] = static_cast<std::int32_t>(r);
          values[count] = alpha[i * m + r];
          count += values[count] != 0.0;
        }
        if (count == 0) continue;
        problem.rows().load(i, row);
        add_listed(weights.values, weights.width, row, classes.data(), values.data(), count);
      }
    };
  });
}

}  // namespace multimargin::linear
