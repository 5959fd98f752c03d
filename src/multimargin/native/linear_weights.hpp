// The m weight vectors, feature-major: the m weights of a feature lie side by side, padded to whole SIMD
// registers, so that the m scores of a row are one short vector sum over its non-zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "linear_rows.hpp"
#include "platform.hpp"

namespace multimargin {

inline constexpr Index kClassLanes = 8;  // m is padded to a multiple of this
inline Index padded_classes(Index m) { return (m + kClassLanes - 1) / kClassLanes * kClassLanes; }

// Eight or sixteen weights side by side. Left to itself, the compiler turns the loops below inside out.
template <class W, Index Width>
struct Lanes {
#if defined(__GNUC__) || defined(__clang__)
  typedef W Type __attribute__((vector_size(Width * sizeof(W)), aligned(sizeof(W)), may_alias));
#else
  struct Type {
    W values[Width];
    void operator+=(const Type& other) {
      for (Index c = 0; c < Width; ++c) values[c] += other.values[c];
    }
    friend Type operator*(const Type& lanes, W factor) {
      Type product;
      for (Index c = 0; c < Width; ++c) product.values[c] = lanes.values[c] * factor;
      return product;
    }
  };
#endif
};

// scores[c] = sum_k x_k weights[column_k, c] for c in [0, Blocks * Width): the sums stay in registers.
template <Index Blocks, Index Width, class W, class I>
MULTIMARGIN_INLINE void score_chunk(const W* weights, Index stride, const RowTerms<W, I>& row, W* scores) {
  using Lane = typename Lanes<W, Width>::Type;
  Lane sum[Blocks] = {};
  row.each([&](W x, Index column) {
    const Lane* at = reinterpret_cast<const Lane*>(weights + column * stride);
    for (Index b = 0; b < Blocks; ++b) sum[b] += at[b] * x;
  });
  Lane* out = reinterpret_cast<Lane*>(scores);
  for (Index b = 0; b < Blocks; ++b) out[b] = sum[b];
}

// The scores of all `stride` (padded) classes.
template <class W, class I>
MULTIMARGIN_CLONES void score_row(const W* weights, Index stride, const RowTerms<W, I>& row, W* scores) {
  Index c = 0;
  for (; c + 128 <= stride; c += 128) score_chunk<8, 16>(weights + c, stride, row, scores + c);
  switch ((stride - c) / 16) {
    case 7: score_chunk<7, 16>(weights + c, stride, row, scores + c); break;
    case 6: score_chunk<6, 16>(weights + c, stride, row, scores + c); break;
    case 5: score_chunk<5, 16>(weights + c, stride, row, scores + c); break;
    case 4: score_chunk<4, 16>(weights + c, stride, row, scores + c); break;
    case 3: score_chunk<3, 16>(weights + c, stride, row, scores + c); break;
    case 2: score_chunk<2, 16>(weights + c, stride, row, scores + c); break;
    case 1: score_chunk<1, 16>(weights + c, stride, row, scores + c); break;
    default: break;
  }
  c = stride / 16 * 16;
  if (c < stride) score_chunk<1, 8>(weights + c, stride, row, scores + c);
}

// weights[column_k, c] += x_k delta[c] for c in [0, Blocks * Width): the steps stay in registers.
template <Index Blocks, Index Width, class W, class I>
MULTIMARGIN_INLINE void add_chunk(W* weights, Index stride, const RowTerms<W, I>& row, const W* delta) {
  using Lane = typename Lanes<W, Width>::Type;
  Lane step[Blocks];
  for (Index b = 0; b < Blocks; ++b) step[b] = reinterpret_cast<const Lane*>(delta)[b];
  row.each([&](W x, Index column) {
    Lane* at = reinterpret_cast<Lane*>(weights + column * stride);
    for (Index b = 0; b < Blocks; ++b) at[b] += step[b] * x;
  });
}

// The same for all `stride` (padded) classes.
template <class W, class I>
MULTIMARGIN_CLONES void add_row(W* weights, Index stride, const RowTerms<W, I>& row, const W* delta) {
  Index c = 0;
  for (; c + 64 <= stride; c += 64) add_chunk<4, 16>(weights + c, stride, row, delta + c);
  for (; c + 16 <= stride; c += 16) add_chunk<1, 16>(weights + c, stride, row, delta + c);
  if (c < stride) add_chunk<1, 8>(weights + c, stride, row, delta + c);
}

// weights[column_k, classes_c] += x_k delta[c] for the listed classes.
template <class W>
void add_listed(W* weights, Index stride, const LinearRow<W>& row, const std::int32_t* classes, const W* delta, Index listed) {
  row.with_terms([&](const auto& terms) {
    terms.each([&](W x, Index column) {
      W* at = weights + column * stride;
      for (Index c = 0; c < listed; ++c) at[classes[c]] += x * delta[c];
    });
  });
}

// The largest of `stride` scores, a multiple of 8.
template <class W>
MULTIMARGIN_CLONES W top_score(const W* scores, Index stride) {
  W part[kClassLanes];
  std::copy(scores, scores + kClassLanes, part);
  for (Index c = kClassLanes; c < stride; c += kClassLanes)
    for (Index l = 0; l < kClassLanes; ++l) part[l] = scores[c + l] > part[l] ? scores[c + l] : part[l];
  return *std::max_element(part, part + kClassLanes);
}

// sum_k x_k^2, in float64.
template <class W>
MULTIMARGIN_CLONES double squared_sum(const W* x, Index count) {
  double part[2 * kClassLanes] = {}, sum = 0.0;
  Index k = 0;
  for (; k + 2 * kClassLanes <= count; k += 2 * kClassLanes)
    for (Index l = 0; l < 2 * kClassLanes; ++l) part[l] += static_cast<double>(x[k + l]) * static_cast<double>(x[k + l]);
  for (const double value : part) sum += value;
  for (; k < count; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return sum;
}

// The same on several threads.
template <class W>
double squared_norm(const W* x, Index size, int n_threads) {
  constexpr Index kPerTask = 1 << 18;
  const Index tasks = (size + kPerTask - 1) / kPerTask;
  std::vector<double> parts(static_cast<std::size_t>(tasks));
  parallel_tasks(tasks, n_threads, [&] {
    return [&](Index t) {
      parts[static_cast<std::size_t>(t)] = squared_sum(x + t * kPerTask, std::min(kPerTask, size - t * kPerTask));
    };
  });
  double sum = 0.0;
  for (const double part : parts) sum += part;
  return sum;
}

// View of (features, stride) weights that somebody else owns.
template <class W>
struct LinearWeights {
  W* values;
  Index features, stride;

  void scores(const LinearRow<W>& row, W* out) const {
    row.with_terms([&](const auto& terms) { score_row(values, stride, terms, out); });
  }

  // w_r += delta_r x for the listed classes; `spread` is room for all of them.
  void add(const LinearRow<W>& row, const std::int32_t* classes, const double* delta, Index count, std::vector<W>& spread) {
    if (8 * count >= stride) {  // whole rows of weights: vectors
      std::fill(spread.begin(), spread.end(), W{0});
      for (Index c = 0; c < count; ++c) spread[static_cast<std::size_t>(classes[c])] = static_cast<W>(delta[c]);
      row.with_terms([&](const auto& terms) { add_row(values, stride, terms, spread.data()); });
      return;
    }
    for (Index c = 0; c < count; ++c) spread[static_cast<std::size_t>(c)] = static_cast<W>(delta[c]);
    add_listed(values, stride, row, classes, spread.data(), count);
  }

  // The weights of a row that is about to be used: its features are scattered over memory.
  void prefetch(const LinearRow<W>& row) const {
    const Index step = 64 / static_cast<Index>(sizeof(W));
    row.with_terms([&](const auto& terms) {
      terms.each([&](W, Index column) {
        for (Index c = 0; c < stride; c += step) MULTIMARGIN_PREFETCH(values + column * stride + c);
      });
    });
  }
};

}  // namespace multimargin
