// The training problem of a linear machine: rows, labels, costs, and the dual point reached so far.
#pragma once

#include "linear/pass_runner.hpp"

namespace multimargin::linear {

// How far a point is from optimal, with all samples measured at the same weights.
struct LinearMeasure {
  double violation = 0.0;  // largest psi
  double gain = 0.0;       // largest g_i / C_i
  double gap = 0.0;        // sum of g_i
  double loss = 0.0;       // sum of L_i
};

class LinearProblem {
 public:
  // n_threads are for measure and rebuild; `parts` is the number of threads of a descent.
  LinearProblem(std::string_view machine, std::unique_ptr<LinearRows> rows, Index m, const std::int32_t* y,
                const double* C, int n_threads, int parts)
      : machine_(machine), rows_(std::move(rows)), m_(m), y_(y), C_(C), n_threads_(n_threads), norm_(rows_->rows()),
        dual_(rows_->rows(), parts) {
    other_ = with_linear_machine(machine_, []<class Machine>(std::type_identity<Machine>) {
      return LinearForm<Machine>::kOtherTarget;
    });
    LinearRow<double> row = this->row();
    for (Index i = 0; i < rows_->rows(); ++i) {
      const double norm = norm_[i] = rows_->norm(i, row);
      if (!std::isfinite(norm)) throw std::invalid_argument("|x|^2 of some rows is not finite: scale the features");
    }
  }

  LinearProblem(const LinearProblem&) = delete;
  LinearProblem& operator=(const LinearProblem&) = delete;

  // Calls work(std::type_identity<Machine>{}) for the machine.
  template <class Work>
  auto with_form(Work work) const {
    return with_linear_machine(machine_, work);
  }

  LabelledRows task() const { return {rows_.get(), m_, y_, C_, norm_.data(), other_}; }
  const LinearRows& rows() const { return *rows_; }
  const std::vector<double>& norms() const { return norm_; }
  Index m() const { return m_; }
  int n_threads() const { return n_threads_; }
  // Room for any row.
  LinearRow<double> row() const {
    LinearRow<double> row;
    row.reserve(rows_->longest());
    return row;
  }
  const std::int32_t* y() const { return y_; }
  SparseDual& dual() { return dual_; }
  const SparseDual& dual() const { return dual_; }

  // Computes W = sum_i x_i alpha_i^T from the dual alone. Every thread has its own classes, in whole cache lines.
  template <class W>
  void rebuild(const LinearWeights<W>& weights) const {
    const Index line = 64 / static_cast<Index>(sizeof(W)), share = (n_threads_ + weights.blocks - 1) / weights.blocks;
    const Index parts = std::min(share, (weights.width + line - 1) / line);  // of a block
    const Index width = (weights.width + parts * line - 1) / (parts * line) * line;
    parallel_tasks(weights.blocks * parts, n_threads_, [&] {
      return [&](Index t) {
        const Index b = t / parts, first = t % parts * width;
        rebuild_classes(weights.block(b), weights.features, b * weights.width, first,
                        std::min(first + width, weights.width));
      };
    });
  }

  // The part of the dual objective beside 1/2 |W|^2, sum_i L_i^*(-alpha_i) = 1/2 sum_i R_i |alpha_i|^2 - <T, alpha>.
  double conjugate() const {
    return with_form([&]<class Machine>(std::type_identity<Machine>) {
      double sum = 0.0;
      for (Index i = 0; i < dual_.size(); ++i) {
        const double own = dual_.own(i);
        double linear = own, square = own * own;
        for (const SparseDual::Entry *entry = dual_.entries(i), *end = entry + dual_.count(i); entry != end; ++entry) {
          linear += other_ * entry->alpha;
          square += entry->alpha * entry->alpha;
        }
        sum += 0.5 * LinearForm<Machine>::ridge(C_[i]) * square - linear;
      }
      return sum;
    });
  }

  // Measures every step-th sample with fixed weights.
  template <class W>
  LinearMeasure measure(const LinearWeights<W>& weights, Index step = 1) {
    return with_form([&]<class Machine>(std::type_identity<Machine>) { return measure_of<Machine>(weights, step); });
  }

 private:
  static constexpr Index kSamplesPerTask = 256;

  template <class Machine, class W>
  LinearMeasure measure_of(const LinearWeights<W>& weights, Index step) {
    const Index count = rows_->rows() / step + (rows_->rows() % step != 0);
    const Index tasks = (count + kSamplesPerTask - 1) / kSamplesPerTask;
    std::vector<LinearMeasure> parts(tasks);
    const double most = dual_.largest();
    parallel_tasks(tasks, n_threads_, [&] {
      auto visitor = std::make_shared<LinearVisitor<W, Machine>>(task(), &dual_, UpdateRule{}, 0);
      visitor->expect(most);
      auto blocks = std::make_shared<ClassWorkers<W>>(task(), weights);
      auto scores = std::make_shared<std::vector<W>>(weights.classes());
      return [&, visitor, blocks, scores](Index t) {
        LinearMeasure part;
        const Index last = std::min(count, (t + 1) * kSamplesPerTask);
        for (Index k = t * kSamplesPerTask; k < last; ++k) {
          const Index i = k * step;
          const W top = blocks->score(i, scores->data());
          if (k + 1 < last) blocks->announce(i + step);
          part.violation = worse_of(part.violation, visitor->look(i, scores->data(), top));
          const double gain = visitor->gain();
          part.gain = std::max(part.gain, gain / C_[i]);
          part.gap += gain;
          part.loss += visitor->loss(i);
        }
        parts[t] = part;
      };
    });
    LinearMeasure all;
    for (const LinearMeasure& part : parts) {
      all.violation = worse_of(all.violation, part.violation);
      all.gain = std::max(all.gain, part.gain);
      all.gap += part.gap;
      all.loss += part.loss;
    }
    return all;
  }

  // Rebuilds classes first..last-1 of a block that begins with class `offset`.
  template <class W>
  void rebuild_classes(const WeightBlock<W>& weights, Index features, Index offset, Index first, Index last) const {
    for (Index f = 0; f < features; ++f)
      std::fill(weights.values + f * weights.stride + first, weights.values + f * weights.stride + last, W{0});
    LinearRow<W> row;
    row.reserve(rows_->longest());
    std::vector<std::int32_t> classes(m_);
    std::vector<W> alpha(m_);
    for (Index i = 0; i < rows_->rows(); ++i) {
      if (dual_.is_zero(i)) continue;
      Index count = 0;
      const auto list = [&](Index r, double value) {
        classes[count] = static_cast<std::int32_t>(r - offset);
        alpha[count] = static_cast<W>(value);
        count += first <= r - offset && r - offset < last;
      };
      list(y_[i], dual_.own(i));
      for (Index e = 0; e < dual_.count(i); ++e) list(dual_.entries(i)[e].r, dual_.entries(i)[e].alpha);
      if (count == 0) continue;
      rows_->load(i, row);
      add_listed(weights.values, weights.stride, row, classes.data(), alpha.data(), count);
    }
  }

  std::string machine_;  // its name
  double other_ = 0.0;   // T_ir for r != y_i
  std::unique_ptr<LinearRows> rows_;
  Index m_;
  const std::int32_t* y_;
  const double* C_;
  int n_threads_;
  std::vector<double> norm_;
  SparseDual dual_;
};

}  // namespace multimargin::linear
