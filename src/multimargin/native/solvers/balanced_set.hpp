// The balanced set: the feasible set of a block whose samples are coupled by their sum, and the projection onto it:
//
//     low_i <= z_i <= high_i,  sum_i z_i = total;     nearest to w:  z_i = clip(w_i + lambda, low_i, high_i)
//
// where lambda is the root of the nondecreasing, piecewise linear  excess(lambda) = sum_i z_i(lambda) - total.
#pragma once

#include "base/reduce.hpp"
#include "machines/machine.hpp"

namespace multimargin::solvers {

using namespace machines;

enum class BalancedRoot { pardalos_kovoor, dai_fletcher };

inline BalancedRoot find_balanced_root(std::string_view name) {
  static constexpr std::array<Choice<BalancedRoot>, 2> roots = {
      {{"pardalos-kovoor", BalancedRoot::pardalos_kovoor}, {"dai-fletcher", BalancedRoot::dai_fletcher}}};
  return find_choice("projection", name, roots).value;
}

// sum_i clip(w_i + lambda, low_i, high_i).
inline MULTIMARGIN_CLONES double clipped_total(const double* w, const double* low, const double* high, Index q,
                                               double lambda) {
  return sum_over(q, [=](Index i) {
    const double value = w[i] + lambda, raised = value < low[i] ? low[i] : value;
    return raised > high[i] ? high[i] : raised;
  });
}

class BalancedSet {
 public:
  // The arrays must outlive the set. Throws std::invalid_argument if no point is feasible.
  BalancedSet(const double* low, const double* high, Index q, double total, BalancedRoot root)
      : low_(low), high_(high), q_(q), total_(total), root_(root), shifted_(q) {
    for (Index i = 0; i < q; ++i)
      if (!(low[i] <= high[i] && std::isfinite(high[i] - low[i])))
        throw std::invalid_argument("low and high must be finite, and low at most high");
    const double scale = sum_over(q, [=](Index i) { return std::max(std::abs(low[i]), std::abs(high[i])); });
    close_ = kExact * scale;
    if (!(sum_of(low, q) - kRounding * scale <= total && total <= sum_of(high, q) + kRounding * scale))
      throw std::invalid_argument("total must be between the sums of the bounds");
  }

  const double* low() const { return low_; }
  const double* high() const { return high_; }

  // z = the nearest point to w; w and z may be the same array. If w is much larger than the bounds, rounding makes the
  // root inexact. Then the entries off their bounds take up what the sum misses. If that does not suffice, w + lambda,
  // which is as large as the bounds, is projected again.
  void project(const double* w, double* z) {
    for (Index i = 0; i < q_; ++i)
      if (!std::isfinite(w[i])) throw std::invalid_argument("w must be finite");
    std::copy(w, w + q_, shifted_.begin());
    shift(root());
    for (int repair = 0; repair < kMostRepairs; ++repair) {
      const Sum sum = add_up();
      if (std::abs(total_ - sum.total) <= kExact * sum.size) break;
      shift(repair == 0 && sum.free > 0 ? (total_ - sum.total) / static_cast<double>(sum.free) : root());
    }
    for (Index i = 0; i < q_; ++i) z[i] = bounded(i, w[i]);
  }

  // alpha <- alpha + t (target - alpha), 0 < t <= 1, both feasible.
  void move_towards(const double* target, double t, double* alpha) const {
    if (t == 1.0) {
      std::copy(target, target + q_, alpha);
      return;
    }
    for (Index i = 0; i < q_; ++i) alpha[i] = std::clamp(alpha[i] + t * (target[i] - alpha[i]), low_[i], high_[i]);
  }

 private:
  // Relative to sum_i max(|low|, |high|): by how much `total` may be out of reach, and the error of an exact sum.
  static constexpr double kRounding = 1e-12, kExact = 1e-15;
  static constexpr double kNoise = 1e-15;  // the rounding error of w_i + lambda, relative to both
  static constexpr int kMostRepairs = 4, kMostSecants = 200;
  static constexpr std::size_t kSample = 32;

  struct Sum {
    double total, size;  // sum z, sum |z|
    Index free;          // entries off their bounds
  };

  Sum add_up() const {
    Sum sum{0.0, std::abs(total_), 0};
    for (Index i = 0; i < q_; ++i) {
      const double value = shifted_[i], z = std::clamp(value, low_[i], high_[i]);
      sum.total += z;
      sum.size += std::abs(z);
      sum.free += low_[i] < value && value < high_[i];
    }
    return sum;
  }

  void shift(double lambda) {
    for (double& value : shifted_) value += lambda;
  }

  // z_i, given w_i. A value that differs from a bound only by the rounding of w_i + lambda is set to the bound.
  double bounded(Index i, double w) const {
    const double value = shifted_[i];
    const double noise = std::min(kNoise * (std::abs(w) + std::abs(value - w)), kSmallest * (high_[i] - low_[i]));
    return value - low_[i] <= noise ? low_[i] : high_[i] - value <= noise ? high_[i] : value;
  }

  double root() { return root_ == BalancedRoot::pardalos_kovoor ? at_median() : by_secants(); }

  double excess(double lambda) const { return clipped_total(shifted_.data(), low_, high_, q_, lambda) - total_; }

  // Pardalos & Kovoor: each round halves the breakpoints low - w and high - w in the bracket at their median. A sample
  // without a breakpoint in the bracket adds a constant or a linear term, which goes into running sums. The median is
  // estimated from a few breakpoints, and computed exactly after a bad estimate, so that the work is O(q).
  double at_median() {
    double lower = -kInfinity, upper = kInfinity, constant = 0.0, slope = 0.0;
    std::size_t points = open_all(), before = 4 * points;
    while (points > 0) {
      const double trial = median(lower, upper, 4 * points > 3 * before);
      const double sum = constant + slope * trial +
                         clipped_total(w_.data(), lows_.data(), highs_.data(), static_cast<Index>(w_.size()), trial);
      if (sum == total_) return trial;
      (sum > total_ ? upper : lower) = trial;
      before = points;
      points = close_some(lower, upper, constant, slope);
    }
    if (slope > 0.0) return std::clamp((total_ - constant) / slope, lower, upper);
    return std::isfinite(lower) ? lower : upper;
  }

  // Lists all samples; returns the number of breakpoints.
  std::size_t open_all() {
    w_ = shifted_;
    lows_.assign(low_, low_ + q_);
    highs_.assign(high_, high_ + q_);
    return 2 * w_.size();
  }

  // The median of the breakpoints in the bracket, of all samples or of a few. Every listed sample has a breakpoint
  // there.
  double median(double lower, double upper, bool exact) {
    const std::size_t step = exact ? 1 : w_.size() / kSample + 1;
    points_.clear();
    for (std::size_t k = step / 2; k < w_.size(); k += step) {
      const double first = lows_[k] - w_[k], last = highs_[k] - w_[k];
      if (lower < first && first < upper) points_.push_back(first);
      if (lower < last && last < upper) points_.push_back(last);
    }
    const auto middle = points_.begin() + static_cast<std::ptrdiff_t>(points_.size() / 2);
    std::nth_element(points_.begin(), middle, points_.end());
    return *middle;
  }

  // Removes the samples without a breakpoint in the bracket from the lists; returns the breakpoints of the others.
  std::size_t close_some(double lower, double upper, double& constant, double& slope) {
    std::size_t left = 0, points = 0;
    for (std::size_t k = 0; k < w_.size(); ++k) {
      const double low = lows_[k], high = highs_[k], w = w_[k], first = low - w, last = high - w;
      const std::size_t inside = (lower < first && first < upper) + (lower < last && last < upper);
      const bool at_low = first >= upper, at_high = last <= lower;
      lows_[left] = low, highs_[left] = high, w_[left] = w;
      left += inside > 0;
      points += inside;
      constant += inside > 0 ? 0.0 : at_low ? low : at_high ? high : w;
      slope += inside > 0 || at_low || at_high ? 0.0 : 1.0;
    }
    lows_.resize(left);
    highs_.resize(left);
    w_.resize(left);
    return points;
  }

  // Dai & Fletcher: steps that grow until the sum is passed, then secants.
  double by_secants() const {
    const double* w = shifted_.data();
    const double first = min_over(q_, [=, this](Index i) { return low_[i] - w[i]; });
    const double last = max_over(q_, [=, this](Index i) { return high_[i] - w[i]; });
    double trial = std::clamp(0.0, first, last), r = excess(trial), before = trial, r_before = r;
    double step = std::abs(r) / static_cast<double>(q_);  // the sum has at most slope q, so no root is nearer
    while (r * r_before > 0.0) {
      if (std::abs(r) <= close_ || trial == (r < 0.0 ? last : first)) return trial;
      before = trial, r_before = r;
      trial = r < 0.0 ? std::min(trial + step, last) : std::max(trial - step, first);
      r = excess(trial);
      if (r * r_before > 0.0) step += step / std::max(r_before / r - 1.0, 0.1);
    }
    if (std::abs(r) <= close_) return trial;
    return r > 0.0 ? secants(before, trial, r_before, r) : secants(trial, before, r, r_before);
  }

  // The root between `lower`, where the sum is too small, and `upper`, where it is too large. A step is the secant
  // through both ends, unless that would not move the farther end. Then it is the secant through the last two points on
  // this side, but at most three quarters of the way to the other end.
  double secants(double lower, double upper, double below, double above) const {
    double ratio = 1.0 - below / above;  // (upper - lower) / (upper - trial)
    double trial = upper - (upper - lower) / ratio;
    for (int k = 0; k < kMostSecants && lower < trial && trial < upper; ++k) {
      const double r = excess(trial);
      if (std::abs(r) <= close_) break;
      const bool plain = r > 0.0 ? ratio <= 2.0 : ratio >= 2.0;
      double following;
      if (r > 0.0) {
        const double step = (upper - trial) / std::max(above / r - 1.0, 0.1);
        following = std::max(trial - step, 0.75 * lower + 0.25 * trial);
        upper = trial, above = r;
      } else {
        const double step = (trial - lower) / std::max(below / r - 1.0, 0.1);
        following = std::min(trial + step, 0.75 * upper + 0.25 * trial);
        lower = trial, below = r;
      }
      if (plain) {
        ratio = 1.0 - below / above;
        trial = upper - (upper - lower) / ratio;
      } else if (lower < following && following < upper) {
        ratio = (upper - lower) / (upper - following);
        trial = following;
      } else {
        break;
      }
    }
    return trial;
  }

  const double *low_, *high_;
  Index q_;
  double total_;
  BalancedRoot root_;
  double close_;
  std::vector<double> shifted_;           // w + lambda so far
  std::vector<double> w_, lows_, highs_;  // of the samples with a breakpoint in the bracket
  std::vector<double> points_;            // breakpoints
};

// How far a balanced point is from optimal. With I_up the samples that can grow and I_low those that can shrink,
//
//     violation = min_b max_i v_i = 1/2 [max_up (-G) + max_low G]_+    at    b = 1/2 (max_up (-G) - max_low G),
//
// where b is to be added to G. Both are 0 if all samples are at the same end.
struct BalancedMeasure {
  double violation, bias;
};

inline BalancedMeasure measure_balanced(const BalancedSet& set, const double* G, const double* alpha, Index q) {
  double grow = -kInfinity, shrink = -kInfinity;
  bool broken = false;
  for (Index i = 0; i < q; ++i) {
    const double slack = kActive * (set.high()[i] - set.low()[i]);
    broken |= G[i] != G[i];
    if (alpha[i] < set.high()[i] - slack) grow = std::max(grow, -G[i]);
    if (alpha[i] > set.low()[i] + slack) shrink = std::max(shrink, G[i]);
  }
  if (broken) return {std::numeric_limits<double>::quiet_NaN(), 0.0};
  if (grow == -kInfinity || shrink == -kInfinity) return {0.0, 0.0};
  return {std::max(0.5 * (grow + shrink), 0.0), 0.5 * (grow - shrink)};
}

}  // namespace multimargin::solvers
