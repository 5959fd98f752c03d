// A fast look at all samples of a coordinate descent: which of them violate their conditions by more than a threshold?
//
// A violation is made of two numbers (Machine::worst): the largest gradient among the variables of the sample that may
// fall, and the smallest among those that may rise. Eight samples with equally many variables are looked at side by
// side. Whether a variable may fall or rise is a penalty of 0 or infinity, so that there are no branches.
#pragma once

#include "base/eight.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"
#include "solvers/subproblem.hpp"

namespace multimargin::solvers {

using namespace machines;

inline constexpr Index kScanLanes = Eight::count;

template <class Machine, class Variables>
class LaneScan {
 public:
  using Real = typename Variables::Real;

  // Lists the samples. Those without variables are never found.
  LaneScan(const double* C, const Variables& variables) : C_(C), place_(variables.samples(), -1) {
    std::vector<std::vector<std::int32_t>> with;  // samples by the number of their variables
    for (Index i = 0; i < variables.samples(); ++i) {
      with.resize(std::max<std::size_t>(with.size(), variables.count(i) + 1));
      with[variables.count(i)].push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t slots = 1; slots < with.size(); ++slots)
      for (Index first = 0; first < std::ssize(with[slots]); first += kScanLanes)
        add_group(variables, with[slots].data() + first, std::min(kScanLanes, std::ssize(with[slots]) - first),
                  static_cast<Index>(slots));
    refresh_all(variables);
  }

  // The values of sample i have changed.
  MULTIMARGIN_INLINE void refresh(const Variables& variables, Index i) {
    Index at = place_[i];
    if (at < 0) return;
    const double C = C_[i], least = kActive * C;
    const Index own = variables.own(i);
    for (Index c = 0; c < variables.count(i); ++c, at += kScanLanes) {
      const double value = variables.value(i, c);
      falls_[at] = Machine::fall(value, c == own, C) > least ? 0.0 : kInfinity;
      rises_[at] = Machine::rise(value, c == own, C) > least ? 0.0 : kInfinity;
    }
  }
  void refresh_all(const Variables& variables) {
    for (Index i = 0; i < variables.samples(); ++i) refresh(variables, i);
  }

  // The samples above the threshold, group by group. Returns the largest violation of all samples.
  double find(const Real* G, double threshold, std::vector<Index>& found) const {
    found.resize(groups_.size() * kScanLanes);
    const auto [number, worst] = find_in(groups_.data(), std::ssize(groups_), gradients_.data(), falls_.data(),
                                         rises_.data(), G, threshold, found.data());
    found.resize(number);
    return worst;
  }

 private:
  struct Group {
    Index first, slots;  // of its variables in the arrays below; variables per sample
    std::int32_t samples[kScanLanes], own[kScanLanes];  // numbers, and where the gradients of the own classes are
  };

  // Lanes without a sample repeat the first one, and may neither fall nor rise.
  void add_group(const Variables& variables, const std::int32_t* samples, Index count, Index slots) {
    Group group{.first = std::ssize(gradients_), .slots = slots, .samples = {}, .own = {}};
    gradients_.resize(group.first + slots * kScanLanes);
    falls_.resize(gradients_.size(), kInfinity);
    rises_.resize(gradients_.size(), kInfinity);
    for (Index l = 0; l < kScanLanes; ++l) {
      const Index i = samples[l < count ? l : 0];
      group.samples[l] = static_cast<std::int32_t>(i);
      group.own[l] = variables.gradient_place(i, std::max<Index>(variables.own(i), 0));
      if (l < count) place_[i] = group.first + l;
      for (Index c = 0; c < slots; ++c)
        gradients_[group.first + c * kScanLanes + l] = variables.gradient_place(i, c);
    }
    groups_.push_back(group);
  }

  struct Found {
    Index number;
    double worst;
  };

  static MULTIMARGIN_CLONES Found find_in(const Group* groups, Index count, const std::int32_t* gradients,
                                          const double* falls, const double* rises, const Real* G, double threshold,
                                          Index* found) {
    Index number = 0;
    Eight most;
    for (const Group* group = groups; group != groups + count; ++group) {
      Index at = group->first;
      const Eight first = Eight::gathered(G, gradients + at);
      Eight top = first - Eight(falls + at), low = first + Eight(rises + at);
      for (Index c = 1; c < group->slots; ++c) {
        at += kScanLanes;
        const Eight g = Eight::gathered(G, gradients + at);
        top = larger(g - Eight(falls + at), top);
        low = smaller(g + Eight(rises + at), low);
      }
      const Eight worst = Machine::worst(top, low, Eight::gathered(G, group->own));
      most = larger(worst, most);
      for (Index l = 0; l < kScanLanes; ++l) {
        found[number] = group->samples[l];
        number += worst[l] > threshold;
      }
    }
    double worst = 0.0;
    for (Index l = 0; l < kScanLanes; ++l) worst = worse_of(worst, most[l]);
    return {number, worst};
  }

  const double* C_;
  std::vector<Index> place_;  // of each sample's first variable
  std::vector<Group> groups_;
  // Of each variable: where its gradient is, and its penalties. The c-th variables of the samples of a group lie side
  // by side.
  std::vector<std::int32_t> gradients_;
  std::vector<double> falls_, rises_;
};

}  // namespace multimargin::solvers
