// AddGroups for one instruction set, with the sums of all rows in registers. integer_groups.hpp
// includes this file once per instruction set, inside the namespace of that set, with MULTIMARGIN_TARGET as the
// attribute of its functions.
//
// s[i] is register i % columns of row i / columns. The numbers i are template arguments, because the compiler keeps the
// registers in memory if they are indexed in a loop.

template <class Simd, int rows, int... i>
MULTIMARGIN_TARGET MULTIMARGIN_INLINE void multiply(const RowGroup<rows>* groups, Index count,
                                                    const unsigned char* panel, typename Simd::Register* s,
                                                    std::integer_sequence<int, i...>) {
  constexpr int columns = static_cast<int>(sizeof...(i)) / rows;
  for (const RowGroup<rows>* g = groups; g < groups + count; ++g) {
    const unsigned char* line = panel + g->line;
    ((s[i] = Simd::add(s[i], Simd::repeat(g->values[i / columns]), line, i % columns)), ...);
  }
}

template <class Simd, int rows, int... i>
MULTIMARGIN_TARGET MULTIMARGIN_INLINE void add(const RowGroup<rows>* groups, Index count, const unsigned char* panel,
                                               std::int32_t* sums, Index ld, Index /*period*/,
                                               std::integer_sequence<int, i...> all) {
  constexpr int columns = static_cast<int>(sizeof...(i)) / rows, lanes = integer_panel / columns;
  typename Simd::Register s[] = {Simd::load(sums + i / columns * ld + i % columns * lanes)...};
  multiply<Simd>(groups, count, panel, s, all);
  (Simd::store(sums + i / columns * ld + i % columns * lanes, s[i]), ...);
}

// Wide sums are kept as 2^16 high + s. Every `period` groups, `high` takes over what exceeds 16 bits of s.
template <class Simd, int rows, int... i>
MULTIMARGIN_TARGET MULTIMARGIN_INLINE void add(const RowGroup<rows>* groups, Index count, const unsigned char* panel,
                                               double* sums, Index ld, Index period,
                                               std::integer_sequence<int, i...> all) {
  constexpr int lanes = rows * integer_panel / static_cast<int>(sizeof...(i));
  typename Simd::Register s[] = {Simd::repeat(i & 0)...};
  alignas(64) std::int32_t low[rows * integer_panel], high[rows * integer_panel] = {};
  for (Index first = 0; first < count; first += period) {
    multiply<Simd>(groups + first, std::min(period, count - first), panel, s, all);
    (Simd::store(high + i * lanes, Simd::add_high(Simd::load(high + i * lanes), s[i])), ...);
    ((s[i] = Simd::low(s[i])), ...);
  }
  (Simd::store(low + i * lanes, s[i]), ...);
  for (Index k = 0; k < rows; ++k)
    for (Index l = 0; l < integer_panel; ++l)
      sums[k * ld + l] += 65536.0 * high[k * integer_panel + l] + low[k * integer_panel + l];
}

template <class Simd, int rows>
using Registers =
    std::make_integer_sequence<int, rows * integer_panel * sizeof(std::int32_t) / sizeof(typename Simd::Register)>;

template <class Simd, int rows, class Sum>
MULTIMARGIN_TARGET void add_groups(const RowGroup<rows>* groups, Index count, const unsigned char* panel, Sum* sums,
                                   Index ld, Index period) {
  add<Simd>(groups, count, panel, sums, ld, period, Registers<Simd, rows>{});
}
