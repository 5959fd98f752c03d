// Exact inner products of small integers. Columns lie side by side in panels; a few consecutive features of a column (a
// group) lie together. A row is the list of its groups that are not all zero, so features that a row does not have cost
// nothing. The best instruction set is picked at run time: four bytes or two 16-bit numbers with AVX-512 VNNI,
// two numbers with AVX2, else one feature at a time in plain loops.
#pragma once

#include "samples/samples.hpp"

namespace multimargin::samples {

// Instruction sets for integer products, each including the ones before it.
enum class IntegerSimd { portable, avx2, vnni };

inline constexpr const char* integer_simd_names[] = {"portable", "avx2", "vnni"};

inline IntegerSimd machine_integer_simd() {
#if MULTIMARGIN_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return IntegerSimd::vnni;
  if (__builtin_cpu_supports("avx2")) return IntegerSimd::avx2;
#endif
  return IntegerSimd::portable;
}

// What samples made from now on use. Tests lower it to run the code of lesser machines.
inline std::atomic<IntegerSimd> integer_simd{machine_integer_simd()};

// Chooses by name, "best" for what the machine has.
inline void choose_integer_simd(const std::string& name) {
  const IntegerSimd best = machine_integer_simd();
  IntegerSimd chosen = best;
  if (name != "best") {
    int level = 0;
    while (level < 3 && name != integer_simd_names[level]) ++level;
    if (level == 3) throw std::invalid_argument("the name must be best, portable, avx2 or vnni, not '" + name + "'");
    if (level > static_cast<int>(best)) throw std::invalid_argument("this machine has no " + name);
    chosen = static_cast<IntegerSimd>(level);
  }
  integer_simd = chosen;
}

// Columns of one panel.
inline constexpr Index integer_panel = tile_alignment;

// A group of `rows` rows: where its line begins in every panel (in bytes), and for each row its values: one number, two
// 16-bit numbers or four bytes, the first in the lowest bits.
template <int rows>
struct RowGroup {
  std::uint32_t line;
  std::int32_t values[rows];
};

// sums[k * ld + l] += sum over the `count` groups of the products of row k's features with those of column l. Sums of
// type std::int32_t are taken modulo 2^32: the result is exact if it fits, even if intermediate sums do not. Sums that
// need more than 32 bits are double; then sums of `period` groups fit 32 bits, with 2^16 to spare.
template <class Sum, int rows>
using AddGroups = void (*)(const RowGroup<rows>* groups, Index count, const unsigned char* panel, Sum* sums, Index ld,
                           Index period);

// Groups of one feature: column l of a line is the feature's value there.
template <class S>
MULTIMARGIN_CLONES void add_features_portable(const RowGroup<1>* groups, Index count, const unsigned char* panel,
                                              std::int32_t* sums, Index, Index) {
  for (const RowGroup<1>* g = groups; g < groups + count; ++g) {
    const S* line = reinterpret_cast<const S*>(panel + g->line);
    const auto value = static_cast<std::int16_t>(g->values[0]);
#pragma omp simd
    for (Index l = 0; l < integer_panel; ++l) {
      const std::int32_t product = value * static_cast<std::int16_t>(line[l]);
      sums[l] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[l]) + static_cast<std::uint32_t>(product));
    }
  }
}

template <class S>
void add_features_portable(const RowGroup<1>* groups, Index count, const unsigned char* panel, double* sums, Index,
                           Index period) {
  for (Index first = 0; first < count; first += period) {
    std::int32_t part[integer_panel] = {};
    add_features_portable<S>(groups + first, std::min(period, count - first), panel, part, integer_panel, period);
    for (Index l = 0; l < integer_panel; ++l) sums[l] += part[l];
  }
}

#if MULTIMARGIN_X86

// One namespace per instruction set. A Products class has a register of sums, and `add`, which adds the products of a
// row's group (repeated in `values`) and part c of a line to it. integer_products.inc.hpp makes AddGroups of
// it.

namespace avx2 {  // eight columns by two features at a time
#define MULTIMARGIN_TARGET MULTIMARGIN_AVX2
#define MULTIMARGIN_SIMD MULTIMARGIN_TARGET MULTIMARGIN_INLINE static

struct Sums {
  using Register = __m256i;
  MULTIMARGIN_SIMD Register load(const void* p) { return _mm256_loadu_si256(static_cast<const Register*>(p)); }
  MULTIMARGIN_SIMD void store(void* p, Register r) { _mm256_storeu_si256(static_cast<Register*>(p), r); }
  MULTIMARGIN_SIMD Register repeat(std::int32_t values) { return _mm256_set1_epi32(values); }
  // high + floor(sum / 2^16), and the rest of sum.
  MULTIMARGIN_SIMD Register add_high(Register high, Register sum) {
    return _mm256_add_epi32(high, _mm256_srai_epi32(sum, 16));
  }
  MULTIMARGIN_SIMD Register low(Register sum) { return _mm256_and_si256(sum, _mm256_set1_epi32(0xffff)); }
};

template <class S>
struct TwoFeatures : Sums {
  MULTIMARGIN_SIMD Register add(Register sum, Register values, const unsigned char* line, int c) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(values, widen(line + 16 * Index{sizeof(S)} * c)));
  }
  MULTIMARGIN_SIMD Register widen(const unsigned char* p) {
    if constexpr (sizeof(S) == 2) return load(p);
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return std::is_signed_v<S> ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
  }
};

#include "samples/integer_products.inc.hpp"
#undef MULTIMARGIN_TARGET
}  // namespace avx2

namespace vnni {  // sixteen columns by two or four features at a time
#define MULTIMARGIN_TARGET MULTIMARGIN_VNNI

struct Sums {
  using Register = __m512i;
  MULTIMARGIN_SIMD Register load(const void* p) { return _mm512_loadu_si512(p); }
  MULTIMARGIN_SIMD void store(void* p, Register r) { _mm512_storeu_si512(p, r); }
  MULTIMARGIN_SIMD Register repeat(std::int32_t values) { return _mm512_set1_epi32(values); }
  MULTIMARGIN_SIMD Register add_high(Register high, Register sum) {
    return _mm512_add_epi32(high, _mm512_srai_epi32(sum, 16));
  }
  MULTIMARGIN_SIMD Register low(Register sum) { return _mm512_and_si512(sum, _mm512_set1_epi32(0xffff)); }
};

template <class S>
struct TwoFeatures : Sums {
  MULTIMARGIN_SIMD Register add(Register sum, Register values, const unsigned char* line, int c) {
    return _mm512_dpwssd_epi32(sum, values, widen(line + 32 * Index{sizeof(S)} * c));
  }
  MULTIMARGIN_SIMD Register widen(const unsigned char* p) {
    if constexpr (sizeof(S) == 2) return load(p);
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
};

struct FourFeatures : Sums {  // the row's bytes are unsigned, the panel's signed
  MULTIMARGIN_SIMD Register add(Register sum, Register values, const unsigned char* line, int c) {
    return _mm512_dpbusd_epi32(sum, values, load(line + 64 * c));
  }
};

#include "samples/integer_products.inc.hpp"
#undef MULTIMARGIN_TARGET
#undef MULTIMARGIN_SIMD
}  // namespace vnni

#endif

// So many rows are multiplied together if most of their groups are not zero.
inline constexpr int joint_rows = 4;

// The functions for one type of sums.
template <class Sum>
struct GroupSums {
  AddGroups<Sum, 1> one = nullptr;
  AddGroups<Sum, joint_rows> joint = nullptr;  // null if the machine has too few registers

  bool operator==(const GroupSums&) const = default;
};

// How samples of type S are packed and multiplied.
struct GroupFormat {
  Index group;  // features in a group: 1, 2 or 4
  int shift;    // 0, or 128 subtracted from the panels' bytes; the row's part of it is added back
  GroupSums<std::int32_t> narrow;
  GroupSums<double> wide;

  bool operator==(const GroupFormat&) const = default;
};

template <class S>
GroupFormat group_format(IntegerSimd simd) {
#if MULTIMARGIN_X86
  if (simd == IntegerSimd::vnni) {
    constexpr bool bytes = std::is_same_v<S, std::uint8_t>;
    using Products = std::conditional_t<bytes, vnni::FourFeatures, vnni::TwoFeatures<S>>;
    return {bytes ? 4 : 2,
            bytes ? 128 : 0,
            {vnni::add_groups<Products, 1>, vnni::add_groups<Products, joint_rows>},
            {vnni::add_groups<Products, 1>, vnni::add_groups<Products, joint_rows>}};
  }
  using Pairs = avx2::TwoFeatures<S>;
  if (simd == IntegerSimd::avx2) return {2, 0, {avx2::add_groups<Pairs, 1>}, {avx2::add_groups<Pairs, 1>}};
#else
  (void)simd;
#endif
  return {1, 0, {add_features_portable<S>}, {add_features_portable<S>}};
}

// Calls f with the number of features in a group as a constant.
template <class F>
auto with_group_size(Index group, F f) {
  switch (group) {
    case 4: return f(std::integral_constant<int, 4>{});
    case 2: return f(std::integral_constant<int, 2>{});
    default: return f(std::integral_constant<int, 1>{});
  }
}

}  // namespace multimargin::samples
