// The kernels as functions of one number per two rows: an inner product or a distance.
//   linear <a,b>   poly (gamma <a,b> + coef0)^degree   sigmoid tanh(gamma <a,b> + coef0)
//   rbf exp(-gamma |a-b|^2)   laplacian exp(-gamma |a-b|_1)
// The value used everywhere is k(a,b) * scale_a * scale_b + offset.
#pragma once

#include "base/vector_math.hpp"
#include "samples/comparison.hpp"

namespace multimargin::kernel {

using namespace samples;

enum class Kernel { linear, rbf, poly, sigmoid, laplacian };

struct KernelSpec {
  Kernel kind;
  double gamma, coef0;
  int degree;
  double offset;

  KernelSpec(const std::string& name, double gamma, double coef0, int degree, double offset)
      : kind(parse(name)), gamma(gamma), coef0(coef0), degree(degree), offset(offset) {
    if (degree < 0) throw std::invalid_argument("KernelSpec: degree must be a non-negative integer");
    if (!std::isfinite(gamma) || !std::isfinite(coef0) || !std::isfinite(offset))
      throw std::invalid_argument("KernelSpec: gamma, coef0 and offset must be finite");
  }

  Comparison comparison() const {
    if (kind == Kernel::rbf) return Comparison::squared_distance;
    return kind == Kernel::laplacian ? Comparison::l1_distance : Comparison::product;
  }

 private:
  static constexpr const char* names[] = {"linear", "rbf", "poly", "sigmoid", "laplacian"};

  static Kernel parse(const std::string& name) {
    for (int i = 0; i < 5; ++i)
      if (name == names[i]) return static_cast<Kernel>(i);
    throw std::invalid_argument("KernelSpec: kind must be linear, rbf, poly, sigmoid or laplacian, not '" + name + "'");
  }
};

// base^degree for `width` values at once, by repeated squaring.
template <class T, int width>
MULTIMARGIN_INLINE void power(T* base, int degree, T* result) {
  for (int l = 0; l < width; ++l) result[l] = T(1);
  for (; degree > 0; degree >>= 1) {
    if (degree & 1)
      for (int l = 0; l < width; ++l) result[l] *= base[l];
    if (degree > 1)
      for (int l = 0; l < width; ++l) base[l] *= base[l];
  }
}

template <class Arg, class Raw, class Out>
MULTIMARGIN_INLINE void poly_row(Arg gamma, Arg coef0, int degree, const Raw* raw, Index width, Out* out) {
  constexpr int block = 64;
  Arg base[block], result[block];
  for (Index j = 0; j < width; j += block) {
    const int count = static_cast<int>(std::min<Index>(block, width - j));
    for (int l = 0; l < block; ++l) base[l] = l < count ? gamma * static_cast<Arg>(raw[j + l]) + coef0 : Arg(0);
    power<Arg, block>(base, degree, result);
    for (int l = 0; l < count; ++l) out[j + l] = static_cast<Out>(result[l]);
  }
}

// How raw values of one row become distances: unit * (a_norm + b_norm[j] + weight * raw[j]), at least 0. If b_norm is
// null, unit * raw[j] is the distance or product itself.
template <class Raw>
struct RowExpansion {
  Raw a_norm = 0;
  const Raw* b_norm = nullptr;
  Raw weight = 0;
  double unit = 1;
};

// exp(-gamma distance) = 2^(-rate distance).
template <class Arg, class Raw, class Out>
MULTIMARGIN_INLINE void exp_row(Arg rate, const Raw* raw, const RowExpansion<Raw>& e, Index width, Out* out) {
  if (!e.b_norm) {
#pragma omp simd
    for (Index j = 0; j < width; ++j)
      out[j] = vector_math::exp2_of_negative(static_cast<Out>(-rate * static_cast<Arg>(raw[j])));
    return;
  }
  const Raw a_norm = e.a_norm, weight = e.weight;
  const Raw* b_norm = e.b_norm;
  const auto fill = [=](auto mixed) MULTIMARGIN_INLINE_LAMBDA {
#pragma omp simd
    for (Index j = 0; j < width; ++j) {
      Raw distance = (a_norm + b_norm[j]) + mixed(raw[j]);
      distance = distance < 0 ? Raw(0) : distance;
      out[j] = vector_math::exp2_of_negative(static_cast<Out>(-rate * static_cast<Arg>(distance)));
    }
  };
  // Products of 32-bit integers take as long as many additions.
  if (std::is_integral_v<Raw> && weight == -2)
    fill([](Raw x) { return -(x + x); });
  else
    fill([=](Raw x) { return weight * x; });
}

// out[j] = k of raw[j], j < width, without scale and offset. The argument is formed in the precision of the raw values
// (of the result, if they are integers); exp and tanh run in the precision of the result. out may be raw itself.
template <class Raw, class Out>
MULTIMARGIN_INLINE void kernel_row(const KernelSpec& spec, const Raw* raw, const RowExpansion<Raw>& expansion,
                                   Index width, Out* out) {
  using Arg = std::conditional_t<std::is_integral_v<Raw>, Out, Raw>;
  const Arg unit = static_cast<Arg>(expansion.unit);
  const Arg gamma = static_cast<Arg>(spec.gamma * expansion.unit), coef0 = static_cast<Arg>(spec.coef0);
  switch (spec.kind) {
    case Kernel::linear:
#pragma omp simd
      for (Index j = 0; j < width; ++j) out[j] = static_cast<Out>(unit * static_cast<Arg>(raw[j]));
      break;
    case Kernel::poly: poly_row(gamma, coef0, spec.degree, raw, width, out); break;
    case Kernel::sigmoid:
#pragma omp simd
      for (Index j = 0; j < width; ++j)
        out[j] = vector_math::tanh(static_cast<Out>(gamma * static_cast<Arg>(raw[j]) + coef0));
      break;
    case Kernel::rbf:
    case Kernel::laplacian: {
      const Arg rate = static_cast<Arg>(spec.gamma * expansion.unit * vector_math::kLog2OfE);
      exp_row(rate, raw, expansion, width, out);
      break;
    }
  }
}

// Raw values in rows, `stride` apart, with the norms of the rows or null.
template <class Raw>
struct RawRows {
  const Raw* values;
  Index stride;
  const Raw* norms;
};

// The same for `count` rows in one call: out[k] is where row k goes.
template <class Raw, class Out>
MULTIMARGIN_CLONES void kernel_rows(const KernelSpec& spec, RawRows<Raw> raw, RowExpansion<Raw> expansion, Index count,
                                    Index width, Out* const* out) {
  for (Index k = 0; k < count; ++k) {
    if (raw.norms) expansion.a_norm = raw.norms[k];
    kernel_row(spec, raw.values + k * raw.stride, expansion, width, out[k]);
  }
}

// wide[j] = row[j], j < width. A loop that converts bytes and computes with doubles would convert only a few at a time.
MULTIMARGIN_CLONES inline void widen_row(const std::uint8_t* row, Index width, std::int32_t* wide) {
#pragma omp simd
  for (Index j = 0; j < width; ++j) wide[j] = row[j];
}

// row[j] = row[j] * (a_scale * b_scale[j]) + offset; b_scale null means ones.
template <class Out>
MULTIMARGIN_CLONES void scale_row(Out a_scale, const Out* b_scale, Out offset, Index width, Out* row) {
  if (b_scale) {
#pragma omp simd
    for (Index j = 0; j < width; ++j) row[j] = row[j] * (a_scale * b_scale[j]) + offset;
  } else {
#pragma omp simd
    for (Index j = 0; j < width; ++j) row[j] = row[j] * a_scale + offset;
  }
}

}  // namespace multimargin::kernel
