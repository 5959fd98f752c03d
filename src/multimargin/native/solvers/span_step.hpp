// A step over two directions at once between the sweeps of a coordinate descent.
//
// Sweeps creep if the kernel is nearly singular: each moves a little further the way of the one before. Two directions
// are at hand with their products with the kernel, because the gradient tells them without a product:
//
//     d_2 = alpha - alpha_before,  K d_2 = G - G_before     what sweeps did since the last such step
//     d_1, K d_1                                            the last such step itself
//
// The step d = t_1 d_1 + t_2 d_2 minimises the dual over both:
//
//     minimise over t   sum_j t_j <G, d_j> + 1/2 sum_jk t_j t_k <d_j, K d_k>        (two linear equations)
//
// On a quadratic function without bounds this would be a method of conjugate directions. A sample that would leave its
// bounds goes only as far as they allow. If many would, or if the dual does not fall, nothing moves, and the next step
// is tried after twice as many updates.
//
// Drift: differences of gradients have rounding errors, which grow with |t_1| and |t_2|, from step to step. The errors
// of all steps are added up, and no step is made that could bring them near the violation that the descent must reach.
#pragma once

#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

template <class Machine, class T, class Real>
class SpanStep {
 public:
  using Variables = ListedVariables<Machine, T, Real>;

  // Steps if enough samples moved since the last step; eps is the violation to reach. Whether samples moved; adds the
  // work.
  bool step(const Subproblem<T>& b, Variables& variables, const Machine& machine, DescentResult& result, double eps) {
    if (result.updates < next_) return false;
    bool moved = false;
    const Index least = b.q / kOften + 1;
    variables.copy_values(alpha_);
    std::vector<Real>& G = variables.gradient();
    result.work += kWorkOfVariable * std::ssize(G);
    if (before_.empty()) {
      forget(G.size());
      wait_ = least;
    } else if (combine(G, eps) && take(b, variables, machine, result.work)) {
      moved = true;
      drift_ += error_;
      variables.copy_values(alpha_);
      wait_ = least;
    } else {
      forget(G.size());
      wait_ *= 2;
    }
    next_ = result.updates + wait_;
    before_ = alpha_;
    G_before_ = G;
    return moved;
  }

 private:
  static constexpr bool kSingle = std::is_same_v<Real, float>;
  static constexpr Index kOften = 2;           // a step after q / kOften updates
  static constexpr double kOutside = 0.25;     // share of the samples that may be cut
  // Of the largest |G|: the error of a difference of gradients.
  static constexpr double kRounding = kSingle ? 1.2e-7 : 1e-15;
  // Of eps: the largest error of G that steps may cause. Single precision goes with fixed-point kernel values, whose
  // errors are larger.
  static constexpr double kDrift = kSingle ? 0.1 : 0.01;
  static constexpr double kParallel = 1e-10;   // directions with a smaller angle (squared) count as one
  static constexpr Index kWorkOfVariable = 8;  // in the time of a multiply-add

  // <G, d_j> and <d_j, K d_k>.
  struct Products {
    double slope1 = 0.0, slope2 = 0.0, curve11 = 0.0, curve12 = 0.0, curve22 = 0.0;
  };

  static MULTIMARGIN_CLONES Products products(const double* __restrict alpha, const double* __restrict before,
                                              const Real* __restrict G, const Real* __restrict G_before,
                                              const double* __restrict d, const Real* __restrict h, Index n) {
    auto d2 = [=](Index k) { return alpha[k] - before[k]; };
    auto h2 = [=](Index k) { return G[k] - G_before[k]; };
    return {sum_over(n, [=](Index k) { return d[k] * G[k]; }), sum_over(n, [=](Index k) { return d2(k) * G[k]; }),
            sum_over(n, [=](Index k) { return d[k] * h[k]; }), sum_over(n, [=](Index k) { return d2(k) * h[k]; }),
            sum_over(n, [=](Index k) { return d2(k) * h2(k); })};
  }

  // Makes d the best combination of both directions, and h its product with K. False if there is none that is safe.
  bool combine(const std::vector<Real>& G, double eps) {
    const auto n = std::ssize(G);
    const Products p =
        products(alpha_.data(), before_.data(), G.data(), G_before_.data(), d_.data(), h_.data(), n);
    double t1 = 0.0, t2 = 0.0;
    const double determinant = p.curve11 * p.curve22 - p.curve12 * p.curve12;
    if (determinant > kParallel * p.curve11 * p.curve22 && p.curve11 > 0.0) {
      t1 = (p.curve12 * p.slope2 - p.curve22 * p.slope1) / determinant;
      t2 = (p.curve12 * p.slope1 - p.curve11 * p.slope2) / determinant;
    } else if (p.curve22 > 0.0) {
      t2 = -p.slope2 / p.curve22;
    }
    const double largest = max_over(n, [&](Index k) { return static_cast<double>(std::abs(G[k])); });
    error_ = std::abs(t1) * error_ + std::abs(t2) * kRounding * largest;
    if ((t1 == 0.0 && t2 == 0.0) || !(drift_ + error_ <= kDrift * eps)) return false;
    add_both(t1, t2, alpha_.data(), before_.data(), G.data(), G_before_.data(), n, d_.data(), h_.data());
    return true;
  }

  static MULTIMARGIN_CLONES void add_both(double t1, double t2, const double* __restrict alpha,
                                          const double* __restrict before, const Real* __restrict G,
                                          const Real* __restrict G_before, Index n, double* __restrict d,
                                          Real* __restrict h) {
    const Real s1 = static_cast<Real>(t1), s2 = static_cast<Real>(t2);
    for (Index k = 0; k < n; ++k) {
      d[k] = t1 * d[k] + t2 * (alpha[k] - before[k]);
      h[k] = s1 * h[k] + s2 * (G[k] - G_before[k]);
    }
  }

  // Moves by d, cut to the bounds of each sample, and makes h the product with what is left of it. False if nothing
  // moves. Adds the work.
  bool take(const Subproblem<T>& b, Variables& variables, const Machine& machine, Index& work) {
    cut_.clear();
    row_.resize(2 * b.m);
    for (Index i = 0; i < b.q; ++i)
      if (const double length = length_of(b, variables, i); length < 1.0) cut_.push_back({i, length});
    if (static_cast<double>(cut_.size()) > kOutside * static_cast<double>(b.q)) return false;
    std::vector<Real>& G = variables.gradient();
    G_old_ = G;
    variables.add_to_gradient(1.0, h_);
    for (const Cut& cut : cut_) work += variables.shorten(cut.sample, cut.length, d_);
    const double change = 0.5 * sum_over(std::ssize(G), [&](Index k) { return d_[k] * (G_old_[k] + G[k]); });
    if (!(change < 0.0)) {
      G = G_old_;
      return false;
    }
    for (Index i = 0; i < b.q; ++i) move(b, variables, machine, i);
    for (std::size_t k = 0; k < G.size(); ++k) h_[k] = G[k] - G_old_[k];
    return true;
  }

  // The largest part of its step that sample i can take, at most 1.
  double length_of(const Subproblem<T>& b, const Variables& variables, Index i) {
    const Index count = variables.count(i), own = variables.own(i);
    double *alpha = row_.data(), *d = alpha + b.m;
    variables.read_values(i, alpha_, alpha);
    variables.read_values(i, d_, d);
    double length = 1.0;
    for (Index c = 0; c < count; ++c) {
      const double up = Machine::rise(alpha[c], c == own, b.C[i]), down = Machine::fall(alpha[c], c == own, b.C[i]);
      if (length * d[c] > up) length = up / d[c];
      if (length * -d[c] > down) length = down / -d[c];
    }
    return length;
  }

  void move(const Subproblem<T>& b, Variables& variables, const Machine& machine, Index i) {
    const Index count = variables.count(i);
    if (count == 0) return;
    double *alpha = row_.data(), *d = alpha + b.m;
    variables.read_values(i, alpha_, alpha);
    variables.read_values(i, d_, d);
    bool moved = false;
    for (Index c = 0; c < count; ++c) {
      alpha[c] += d[c];
      moved = moved || d[c] != 0.0;
    }
    if (!moved) return;
    machine.settle(variables.own(i), b.C[i], count, alpha);
    variables.place(i, alpha);
  }

  // Begins again with what the next sweeps do.
  void forget(std::size_t variables) {
    d_.assign(variables, 0.0);
    h_.assign(variables, Real(0));
    error_ = 0.0;
  }

  struct Cut {
    Index sample;
    double length;
  };

  // One number per variable, in the order of the gradient:
  std::vector<double> alpha_, before_;    // now, and after the last step
  std::vector<Real> G_before_;            // the gradient there
  std::vector<double> d_;                 // the last step
  std::vector<Real> h_;                   // K times it
  std::vector<Real> G_old_;
  std::vector<Cut> cut_;
  std::vector<double> row_;  // of one sample: values, step
  Index next_ = 0;           // number of updates at which the next step is tried
  Index wait_ = 1;           // updates between two steps
  double error_ = 0.0;       // bound of the rounding error of h
  double drift_ = 0.0;       // of G, by all steps
};

}  // namespace multimargin::solvers
