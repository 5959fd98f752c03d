// Eight numbers side by side, with the operations of one: for loops whose branches differ from one lane to the next.
// (Compilers turn conditional loops over short arrays into jumps.)
#pragma once

#include "base/fixed16.hpp"

namespace multimargin::inline base {

class Eight {
 public:
  static constexpr Index count = 8;
#if defined(__GNUC__)
  typedef double Vector __attribute__((vector_size(count * sizeof(double))));
#else
  using Vector = std::array<double, count>;
#endif

  MULTIMARGIN_INLINE Eight() = default;
  MULTIMARGIN_INLINE explicit Eight(double x) {
    for (Index l = 0; l < count; ++l) v_[l] = x;
  }
  MULTIMARGIN_INLINE explicit Eight(const Vector& v) : v_(v) {}
  MULTIMARGIN_INLINE explicit Eight(const double* x) { std::memcpy(&v_, x, sizeof(v_)); }
  MULTIMARGIN_INLINE void store(double* x) const { std::memcpy(x, &v_, sizeof(v_)); }

  // values[at[l]] in lane l.
  template <class T>
  static MULTIMARGIN_INLINE Eight gathered(const T* values, const std::int32_t* at) {
    const auto x = [=](Index l) MULTIMARGIN_INLINE_LAMBDA { return static_cast<double>(values[at[l]]); };
    return Eight(Vector{x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7)});
  }

  // Stored kernel values side by side; fixed-point numbers as the integers that they are.
  template <class T>
  static MULTIMARGIN_INLINE Eight stored(const T* row) {
#if defined(__GNUC__)
    using Number = std::conditional_t<std::is_same_v<T, Fixed16>, std::uint16_t, T>;
    typedef Number Numbers __attribute__((vector_size(count * sizeof(Number))));
    Numbers numbers;
    std::memcpy(&numbers, row, sizeof(numbers));
    return Eight(__builtin_convertvector(numbers, Vector));
#else
    Eight made;
    for (Index l = 0; l < count; ++l) made.v_[l] = stored_value<double>(row[l]);
    return made;
#endif
  }

  MULTIMARGIN_INLINE double operator[](Index lane) const { return v_[lane]; }
  MULTIMARGIN_INLINE void set(Index lane, double x) { v_[lane] = x; }

#if defined(__GNUC__)
  MULTIMARGIN_INLINE Eight& operator+=(const Eight& x) { return v_ += x.v_, *this; }
  MULTIMARGIN_INLINE Eight& operator-=(const Eight& x) { return v_ -= x.v_, *this; }
  MULTIMARGIN_INLINE Eight& operator*=(const Eight& x) { return v_ *= x.v_, *this; }
  MULTIMARGIN_INLINE Eight& operator/=(const Eight& x) { return v_ /= x.v_, *this; }

  // In each lane: this = x if a > b.
  MULTIMARGIN_INLINE void set_if_above(const Eight& a, const Eight& b, const Eight& x) {
    v_ = a.v_ > b.v_ ? x.v_ : v_;
  }

 private:
  Vector v_ = {};
#else
  MULTIMARGIN_INLINE Eight& operator+=(const Eight& x) { return each([&](Index l) { v_[l] += x.v_[l]; }); }
  MULTIMARGIN_INLINE Eight& operator-=(const Eight& x) { return each([&](Index l) { v_[l] -= x.v_[l]; }); }
  MULTIMARGIN_INLINE Eight& operator*=(const Eight& x) { return each([&](Index l) { v_[l] *= x.v_[l]; }); }
  MULTIMARGIN_INLINE Eight& operator/=(const Eight& x) { return each([&](Index l) { v_[l] /= x.v_[l]; }); }
  MULTIMARGIN_INLINE void set_if_above(const Eight& a, const Eight& b, const Eight& x) {
    each([&](Index l) { v_[l] = a.v_[l] > b.v_[l] ? x.v_[l] : v_[l]; });
  }

 private:
  template <class Step>
  MULTIMARGIN_INLINE Eight& each(Step step) {
    for (Index l = 0; l < count; ++l) step(l);
    return *this;
  }
  Vector v_ = {};
#endif
};

MULTIMARGIN_INLINE Eight operator+(const Eight& a, const Eight& b) { return Eight(a) += b; }
MULTIMARGIN_INLINE Eight operator-(const Eight& a, const Eight& b) { return Eight(a) -= b; }
MULTIMARGIN_INLINE Eight operator*(const Eight& a, const Eight& b) { return Eight(a) *= b; }
MULTIMARGIN_INLINE Eight operator/(const Eight& a, const Eight& b) { return Eight(a) /= b; }

// In each lane: x if a > b, else y. A comparison with NaN is false.
MULTIMARGIN_INLINE Eight if_above(const Eight& a, const Eight& b, const Eight& x, const Eight& y) {
  Eight chosen = y;
  chosen.set_if_above(a, b, x);
  return chosen;
}

MULTIMARGIN_INLINE Eight larger(const Eight& a, const Eight& b) { return if_above(a, b, a, b); }
MULTIMARGIN_INLINE Eight smaller(const Eight& a, const Eight& b) { return if_above(b, a, a, b); }

}  // namespace multimargin::base
