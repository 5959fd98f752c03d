// The machines that have a linear form, and what its descent asks of them beside the operations on one row.
//
//     kOtherTarget  T_r of the classes other than the label, whose T is 1:  G_i = W^T x_i + R_i alpha_i - T_i
//     ridge         R_i
//     kOwnMoves     whether the label has a variable of its own; else rows sum to zero
//     most_other    largest -alpha_r of another class than the label
//     own           alpha_y of a feasible row, from the value given for it and from -(the sum of the others)
#pragma once

#include "machines/crammer_singer.hpp"
#include "machines/machines.hpp"
#include "machines/one_vs_rest.hpp"
#include "machines/weston_watkins.hpp"

namespace multimargin::linear {

using namespace machines;

template <class Machine>
struct LinearForm;

template <>
struct LinearForm<CrammerSinger> {
  static constexpr double kOtherTarget = 0.0;
  static constexpr bool kOwnMoves = false;
  static double ridge(double /*C*/) { return 0.0; }
  static double scale(double C, double /*kii*/) { return C; }
  static double most_other(double C) { return C; }
  static double own(double /*given*/, double others, double C) { return std::min(others, C); }
};

template <>
struct LinearForm<WestonWatkins> : HingeShape {  // a hinge per wrong class
  static constexpr double kOtherTarget = 0.0;
  static constexpr bool kOwnMoves = false;
  static double scale(double C, double /*kii*/) { return C; }
  static double most_other(double C) { return C; }
  static double own(double /*given*/, double others, double /*C*/) { return others; }
};

template <class Shape>
struct LinearForm<OneVsRestMachine<Shape>> : Shape {
  static constexpr double kOtherTarget = -1.0;
  static constexpr bool kOwnMoves = true;
  static double most_other(double C) { return Shape::most(C); }
  static double own(double given, double /*others*/, double C) { return std::min(given, Shape::most(C)); }

  // What rounding is relative to: C, or the size of a step if beta has no bound and C is far larger.
  static double scale(double C, double kii) { return Shape::kBounded || !(kii * C > 1.0) ? C : 1.0 / kii; }
};

// Calls work(std::type_identity<Machine>{}) for the machine of that name.
template <class Work>
auto with_linear_machine(std::string_view name, Work work) {
  return with_one_of<CrammerSinger, WestonWatkins, OneVsRest, SquaredOneVsRest>(name, work);
}

}  // namespace multimargin::linear
