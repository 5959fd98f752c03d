// Coordinate descent by the algorithm that fits the machine.
#pragma once

#include "solvers/class_descent.hpp"
#include "solvers/coordinate_descent.hpp"
#include "solvers/listed_variables.hpp"
#include "solvers/shared_descent.hpp"
#include "solvers/subproblem.hpp"
#include "solvers/tile_descent.hpp"
#include "solvers/whole_descent.hpp"

namespace multimargin::solvers {

// Whether a descent goes over the listed variables of one sample after the other.
template <class Machine>
inline constexpr bool kListsVariables = Machine::kSumsToZero && !Machine::kSharesMean;

// Calls run(type) with the type of the gradients of such a descent. Fixed-point kernel values are less exact than
// float, and adding them in single precision takes half the time.
template <class T, class Run>
DescentResult in_precision(double eps, Run run) {
  if constexpr (std::is_same_v<T, Fixed16>)
    if (eps >= kSingleEps) return run(std::type_identity<float>{});
  return run(std::type_identity<double>{});
}

// Whether all K_ii are positive: steps of two samples need that.
template <class T>
bool has_curvature(const Subproblem<T>& b) {
  return b.K && !b.shared && std::all_of(b.diag, b.diag + b.q, [](double value) { return value > 0.0; });
}

// Solves the subproblem in place:
//
//     classes share their mean (Lee-Lin-Wahba, M-SVM2)         every step changes all classes: tiles of samples
//     classes are independent (one-vs-rest)                    one class after the other
//     rows sum to zero (Crammer-Singer, Weston-Watkins)        sample after sample over the listed variables; a small
//                                                              block as a whole: the worst samples, with partners
//
// Kernel rows of single classes are copied to `room`, but not those of a small block. Kernel values may be fixed-point
// numbers unless classes share their mean.
template <class Machine, class T>
DescentResult descend(const Subproblem<T>& b, const DescentOptions& options, T* room, Index room_size) {
  Machine machine(b.m, Machine::find_update(options.update), options.seed + 1, options.relax);
  if constexpr (std::is_same_v<T, Fixed16> && Machine::kSharesMean) {
    throw std::invalid_argument("fixed-point kernel blocks are not for lee-lin-wahba and msvm2");
  } else if constexpr (Machine::kSharesMean) {
    if (options.eps >= kSingleTileEps) return TileDescent<Machine, T, T>(b, std::move(machine), options).run();
    return TileDescent<Machine, T, double>(b, std::move(machine), options).run();
  } else if constexpr (!Machine::kSumsToZero) {
    std::vector<Index> ids(b.q);
    std::iota(ids.begin(), ids.end(), Index{0});
    std::vector<ClassRows<T>> rows(b.m, ClassRows<T>(room_size / b.m));
    ClassDescent<Machine, T> descent(b, {b.K, b.K_stride, ids.data(), ids.data()}, b.q, std::move(machine), rows);
    const Index entries = descent.list(options.width);
    return descent.run(options, entries >= b.q * b.q);
  } else {
    if (options.whole && has_curvature(b)) return WholeDescent<Machine, T>(b, std::move(machine), options).run();
    return in_precision<T>(options.eps, [&]<class Real>(std::type_identity<Real>) {
      ListedVariables<Machine, T, Real> variables(b, options.width, room, room_size);
      return CoordinateDescent<Machine, T, Real>(b, std::move(machine), std::move(variables), options).run();
    });
  }
}

// The same together with other processes, for machines that list variables.
template <class Machine, class T>
DescentResult descend_together(const Subproblem<T>& b, const SharedSamples& shared, const DescentOptions& options,
                               T* room, Index room_size) {
  return in_precision<T>(options.eps, [&]<class Real>(std::type_identity<Real>) {
    ListedVariables<Machine, T, Real> variables(b, shared.rows, options.width, room, room_size);
    Machine machine(b.m, Machine::find_update(options.update), options.seed + 1, options.relax);
    return SharedDescent<Machine, T, Real>(b, shared, std::move(machine), std::move(variables), options).run();
  });
}

}  // namespace multimargin::solvers
