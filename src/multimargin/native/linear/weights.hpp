// The m weight vectors, feature-major: the weights of a feature lie side by side, padded to whole SIMD registers, so
// that the m scores of a row are one short vector sum over its non-zeros.
#pragma once

#include "base/counts.hpp"
#include "linear/rows.hpp"

namespace multimargin::linear {

inline constexpr Index kClassLanes = 8;  // m is padded to a multiple of this

// A vector of `Width` weights. With plain arrays the compiler would interchange the loops below.
template <class W, Index Width>
struct Lanes {
#if defined(__GNUC__) || defined(__clang__)
  typedef W Type __attribute__((vector_size(Width * sizeof(W))));

  // A vector anywhere in memory. It is a structure because templates and `auto` forget the attributes of a type.
  struct __attribute__((packed, may_alias)) Stored {
    Type value;
  };

  static MULTIMARGIN_INLINE Type larger(const Type& a, const Type& b) { return a > b ? a : b; }

  // Adds to one lane, if `lane` is one.
  static MULTIMARGIN_INLINE void add_at(Type& lanes, Index lane, W value) {
    using Number = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;
    const auto places = numbers<Number>();
    const Type more = lanes + value;
    lanes = places == static_cast<Number>(lane) ? more : lanes;
  }

  // 0, 1, 2, ...
  template <class Number>
  static MULTIMARGIN_INLINE auto numbers() {
    typedef Number Numbers __attribute__((vector_size(Width * sizeof(Number))));
    Numbers places;
    for (Index c = 0; c < Width; ++c) places[c] = static_cast<Number>(c);
    return places;
  }
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

  struct Stored {
    Type value;
  };

  static void add_at(Type& lanes, Index lane, W value) {
    if (0 <= lane && lane < Width) lanes.values[lane] += value;
  }

  static Type larger(const Type& a, const Type& b) {
    Type both;
    for (Index c = 0; c < Width; ++c) both.values[c] = a.values[c] > b.values[c] ? a.values[c] : b.values[c];
    return both;
  }
#endif

  // The largest of them, by halving.
  static MULTIMARGIN_INLINE W largest(const Type& lanes) {
    if constexpr (Width == 2) {
      W values[2];
      std::memcpy(values, &lanes, sizeof(values));
      return values[0] > values[1] ? values[0] : values[1];
    } else {
      using Half = Lanes<W, Width / 2>;
      typename Half::Type halves[2];
      std::memcpy(halves, &lanes, sizeof(halves));
      return Half::largest(Half::larger(halves[0], halves[1]));
    }
  }
};

// 16 weights per block, followed by 8 if Tail is 1: the classes that one sweep over a row handles.
// A vector has 64 bytes:
// of larger ones compilers make poor code (float64 weights then took six times as long).
template <Index Blocks, Index Tail, class W>
struct ClassLanes {
  static constexpr Index kWidth = 64 / sizeof(W), kVectors = 16 * Blocks / kWidth;
  using Wide = typename Lanes<W, kWidth>::Type;
  using Half = typename Lanes<W, 8>::Type;
  Wide wide[kVectors > 0 ? kVectors : 1] = {};
  Half half[1] = {};

  MULTIMARGIN_INLINE void operator+=(const ClassLanes& other) {
    for (Index b = 0; b < kVectors; ++b) wide[b] += other.wide[b];
    if constexpr (Tail > 0) half[0] += other.half[0];
  }

  // combine(mine, theirs) for every vector of mine, and of the weights at `at`, which change if they are not constant.
  template <class V, class Combine>
  MULTIMARGIN_INLINE void with(V* at, Combine combine) {
    for (Index b = 0; b < kVectors; ++b) with_vector<kWidth>(wide[b], at + kWidth * b, combine);
    if constexpr (Tail > 0) with_vector<8>(half[0], at + 16 * Blocks, combine);
  }

  // Adds to one class, if it is one of these.
  MULTIMARGIN_INLINE void add_at(Index r, W value) {
    for (Index b = 0; b < kVectors; ++b) Lanes<W, kWidth>::add_at(wide[b], r - b * kWidth, value);
    if constexpr (Tail > 0) Lanes<W, 8>::add_at(half[0], r - 16 * Blocks, value);
  }

  MULTIMARGIN_INLINE W largest() const {
    W best = std::numeric_limits<W>::lowest();
    if constexpr (Blocks > 0) {
      Wide most = wide[0];
      for (Index b = 1; b < kVectors; ++b) most = Lanes<W, kWidth>::larger(most, wide[b]);
      best = Lanes<W, kWidth>::largest(most);
    }
    if constexpr (Tail > 0) best = std::max(best, Lanes<W, 8>::largest(half[0]));
    return best;
  }

 private:
  template <Index Width, class Vector, class V, class Combine>
  static MULTIMARGIN_INLINE void with_vector(Vector& mine, V* at, Combine combine) {
    using Stored = typename Lanes<W, Width>::Stored;
    if constexpr (std::is_const_v<V>) {
      const Vector theirs = reinterpret_cast<const Stored*>(at)->value;
      combine(mine, theirs);
    } else {
      Vector theirs = reinterpret_cast<Stored*>(at)->value;
      combine(mine, theirs);
      reinterpret_cast<Stored*>(at)->value = theirs;
    }
  }
};

// scores[c] = base[c] + sum_k x_k weights[column_k, c] for some classes, and of_label more for the label, whose place
// may be outside of these; returns the largest. (If the label's base were written to memory, the vector read next would
// wait for it.) The sums stay in registers. If they are few, the row is split among several partial sums, because a
// single sum would wait for each addition.
template <Index Blocks, Index Tail, class W, class Columns>
MULTIMARGIN_INLINE W score_classes(const W* weights, Index stride, const RowTerms<W, Columns>& row, const W* base,
                                   Index label, W of_label, W* scores) {
  constexpr Index kSums = Blocks + Tail > 3 ? 1 : Blocks + Tail > 1 ? 2 : 4;
  ClassLanes<Blocks, Tail, W> sums[kSums];
  const auto add = [&](Index s, W x, Index column) MULTIMARGIN_INLINE_LAMBDA {
    sums[s].with(weights + column * stride,
                 [x](auto& sum, const auto& at) MULTIMARGIN_INLINE_LAMBDA { sum += at * x; });
  };
  Index k = 0;
  for (; k + kSums <= row.count; k += kSums)
    for (Index s = 0; s < kSums; ++s) add(s, row.values[k + s], static_cast<Index>(row.columns[k + s]));
  for (; k < row.count; ++k) add(0, row.values[k], static_cast<Index>(row.columns[k]));
  if (row.constant != W{0}) add(0, row.constant, row.constant_column);
  for (Index s = 1; s < kSums; ++s) sums[0] += sums[s];
  sums[0].with(base, [](auto& sum, const auto& at) MULTIMARGIN_INLINE_LAMBDA { sum += at; });
  sums[0].add_at(label, of_label);
  sums[0].with(scores, [](const auto& sum, auto& out) MULTIMARGIN_INLINE_LAMBDA { out = sum; });
  return sums[0].largest();
}

// weights[column_k, c] += x_k delta[c] for some classes; the steps stay in registers.
template <Index Blocks, Index Tail, class W, class Columns>
MULTIMARGIN_INLINE void add_classes(W* weights, Index stride, const RowTerms<W, Columns>& row, const W* delta) {
  ClassLanes<Blocks, Tail, W> steps;
  steps.with(delta, [](auto& step, const auto& at) MULTIMARGIN_INLINE_LAMBDA { step = at; });
  row.each([&](W x, Index column) MULTIMARGIN_INLINE_LAMBDA {
    steps.with(weights + column * stride,
               [x](const auto& step, auto& at) MULTIMARGIN_INLINE_LAMBDA { at += step * x; });
  });
}

// use<Blocks, Tail>() for a number of classes known at run time: a multiple of 8 below 16 (Most + 1).
template <Index Most, class Use>
MULTIMARGIN_INLINE void with_lanes(Index classes, Use use) {
  if (classes / 16 == Most) {
    if (classes % 16 == 0)
      use.template operator()<Most, 0>();
    else
      use.template operator()<Most, 1>();
  } else if constexpr (Most > 0) {
    with_lanes<Most - 1>(classes, use);
  }
}

// The scores of all `stride` classes (a multiple of 8), each added to its base; returns the largest.
template <class W, class Columns>
MULTIMARGIN_CLONES W score_row(const W* weights, Index stride, const RowTerms<W, Columns>& row, const W* base,
                               Index label, W of_label, W* scores) {
  W top = std::numeric_limits<W>::lowest();
  const auto take = [&](W largest) MULTIMARGIN_INLINE_LAMBDA { top = largest > top ? largest : top; };
  Index c = 0;
  const auto go_on = [&]<Index Blocks, Index Tail>() MULTIMARGIN_INLINE_LAMBDA {
    take(score_classes<Blocks, Tail>(weights + c, stride, row, base + c, label - c, of_label, scores + c));
  };
  for (; c + 128 <= stride; c += 128) go_on.template operator()<8, 0>();
  if (c == stride) return top;
  with_lanes<7>(stride - c, go_on);
  return top;
}

// The step of all `stride` classes (a multiple of 8).
template <class W, class Columns>
MULTIMARGIN_CLONES void add_row(W* weights, Index stride, const RowTerms<W, Columns>& row, const W* delta) {
  Index c = 0;
  for (; c + 64 <= stride; c += 64) add_classes<4, 0>(weights + c, stride, row, delta + c);
  if (c == stride) return;
  with_lanes<3>(stride - c, [&]<Index Blocks, Index Tail>() MULTIMARGIN_INLINE_LAMBDA {
    add_classes<Blocks, Tail>(weights + c, stride, row, delta + c);
  });
}

// The same for at most 64 classes, with the steps of those that are listed; the others' are zero. Vectors are written
// whole, because vectors that are read next would wait for single weights.
template <class W, class Columns>
MULTIMARGIN_CLONES void add_spread(W* weights, Index stride, const RowTerms<W, Columns>& row,
                                   const std::int32_t* classes, const W* delta, Index listed) {
  with_lanes<4>(stride, [&]<Index Blocks, Index Tail>() MULTIMARGIN_INLINE_LAMBDA {
    ClassLanes<Blocks, Tail, W> steps;
    for (Index c = 0; c < listed; ++c) steps.add_at(classes[c], delta[c]);
    row.each([&](W x, Index column) MULTIMARGIN_INLINE_LAMBDA {
      steps.with(weights + column * stride,
                 [x](const auto& step, auto& at) MULTIMARGIN_INLINE_LAMBDA { at += step * x; });
    });
  });
}

// weights[column_k, classes_c] += x_k delta[c] for the listed classes.
template <class W>
void add_listed(W* weights, Index stride, const LinearRow<W>& row, const std::int32_t* classes, const W* delta,
                Index listed) {
  const auto add = [&](const auto& at_class, const auto& step, auto count) MULTIMARGIN_INLINE_LAMBDA {
    row.with_terms([&](const auto& terms) MULTIMARGIN_INLINE_LAMBDA {
      terms.each([&](W x, Index column) MULTIMARGIN_INLINE_LAMBDA {
        W* at = weights + column * stride;
        for (Index c = 0; c < count; ++c) at[at_class[c]] += x * step[c];
      });
    });
  };
  with_count(listed, [&](auto count) MULTIMARGIN_INLINE_LAMBDA {
    if constexpr (std::is_same_v<decltype(count), Index>) {
      add(classes, delta, count);
    } else {  // few: they stay in registers
      std::array<Index, count()> at_class;
      std::array<W, count()> step;
      std::copy(classes, classes + count, at_class.begin());
      std::copy(delta, delta + count, step.begin());
      add(at_class, step, count);
    }
  });
}

// sum_k x_k^2, in float64.
template <class W>
MULTIMARGIN_CLONES double squared_sum(const W* x, Index count) {
  double part[2 * kClassLanes] = {}, sum = 0.0;
  Index k = 0;
  for (; k + 2 * kClassLanes <= count; k += 2 * kClassLanes)
    for (Index l = 0; l < 2 * kClassLanes; ++l)
      part[l] += static_cast<double>(x[k + l]) * static_cast<double>(x[k + l]);
  for (const double value : part) sum += value;
  for (; k < count; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return sum;
}

// The same on several threads.
template <class W>
double squared_norm(const W* x, Index size, int n_threads) {
  constexpr Index kPerTask = 1 << 18;
  const Index tasks = (size + kPerTask - 1) / kPerTask;
  std::vector<double> parts(tasks);
  parallel_tasks(tasks, n_threads, [&] {
    return [&](Index t) { parts[t] = squared_sum(x + t * kPerTask, std::min(kPerTask, size - t * kPerTask)); };
  });
  double sum = 0.0;
  for (const double part : parts) sum += part;
  return sum;
}

// View of the weights of `stride` classes: (features, stride).
template <class W>
struct WeightBlock {
  W* values;
  Index stride;

  // base + the row's scores; returns the largest.
  W scores(const LinearRow<W>& row, const W* base, Index label, W of_label, W* out) const {
    return row.with_terms(
        [&](const auto& terms) { return score_row(values, stride, terms, base, label, of_label, out); });
  }

  // w_r += delta_r x for the listed classes; `spread` is scratch for all classes. `near` says that the weights are in
  // the first-level cache, and of at most 64 classes.
  void add(const LinearRow<W>& row, const std::int32_t* listed, const W* delta, Index count, bool near,
           std::vector<W>& spread) const {
    if (near)
      return row.with_terms([&](const auto& terms) { add_spread(values, stride, terms, listed, delta, count); });
    if (8 * count < stride) return add_listed(values, stride, row, listed, delta, count);
    std::fill(spread.begin(), spread.end(), W{0});  // many classes: whole rows of weights, in vectors
    for (Index c = 0; c < count; ++c) spread[listed[c]] = delta[c];
    row.with_terms([&](const auto& terms) { add_row(values, stride, terms, spread.data()); });
  }

  // Prefetches the weights of a row that is about to be used: its features are scattered over memory.
  void prefetch(const LinearRow<W>& row) const {
    const Index step = 64 / static_cast<Index>(sizeof(W));
    row.with_terms([&](const auto& terms) {
      terms.each([&](W, Index column) {
        for (Index c = 0; c < stride; c += step) MULTIMARGIN_PREFETCH(values + column * stride + c);
      });
    });
  }
};

// View of all weights, which the caller owns: block after block, each with the same number of classes, in order. Each
// thread has a block. If the blocks' classes lay side by side, one core would prefetch lines that the other writes to.
template <class W>
struct LinearWeights {
  W* values;
  Index features, width, blocks;

  Index classes() const { return width * blocks; }  // padded
  WeightBlock<W> block(Index b) const { return {values + b * features * width, width}; }
};

}  // namespace multimargin::linear
