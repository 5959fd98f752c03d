// Samples of small integers as columns for the products of integer_groups.hpp. Line g of panel p has group g of the
// samples 64 p, 64 p + 1, ..: first all features of that group of one sample, then those of the next one.
#pragma once

#include "samples/integer_groups.hpp"

namespace multimargin::samples {

// One panel of `count` samples, which has `flipped` in place of zeros. To subtract 128 from a byte is to flip its
// highest bit, so a panel of shifted bytes has all bits of `flipped` = 128 flipped.
template <int group, class S>
void pack_panel(const S* x, Index count, Index d, S flipped, S* panel) {
  constexpr Index line = integer_panel * group, lines_at_once = 16;  // these stay in the first-level cache
  constexpr std::size_t bytes = group * sizeof(S);
  const Index whole = d / group, features = whole * group;
  S all_flipped[group];
  std::fill_n(all_flipped, group, flipped);
  std::uint64_t flips = 0;
  std::memcpy(&flips, all_flipped, bytes);
  if (count < integer_panel || features < d) std::fill_n(panel, (d + group - 1) / group * line, flipped);
  for (Index first = 0; first < whole; first += lines_at_once) {
    const Index end = std::min(first + lines_at_once, whole);
    for (Index l = 0; l < count; ++l)
      for (Index g = first; g < end; ++g) {
        std::uint64_t bits = 0;  // the whole group in one number
        std::memcpy(&bits, x + l * d + g * group, bytes);
        bits ^= flips;
        std::memcpy(panel + g * line + l * group, &bits, bytes);
      }
  }
  for (Index l = 0; l < count; ++l)
    for (Index f = features; f < d; ++f)
      panel[whole * line + l * group + (f - features)] = static_cast<S>(x[l * d + f] ^ flipped);
}

// All panels of n samples, one after the other, on threads.
template <int group, class S>
void pack_panels(const S* x, Index n, Index d, S flipped, S* panels, int n_threads) {
  const Index size = (d + group - 1) / group * integer_panel * group;
  const int threads = worthwhile_threads(n_threads, static_cast<double>(n) * static_cast<double>(d));
  parallel_ranges(n, integer_panel, threads, [&](Index i, Index end) {
    pack_panel<group>(x + i * d, end - i, d, flipped, panels + i / integer_panel * size);
  });
}

}  // namespace multimargin::samples
