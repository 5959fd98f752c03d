// Kernel values between rows of a and rows of b, tile by tile: raw values first, then the kernel function while they
// are in cache, with the result written to its final place.
#pragma once

#include "base/aligned_buffer.hpp"
#include "base/row_loops.hpp"
#include "kernel/distance_table.hpp"
#include "kernel/factor_table.hpp"
#include "kernel/kernel_function.hpp"
#include "samples/samples.hpp"

namespace multimargin::kernel {

using namespace samples;

// Two samples and a kernel between them: K(i, j) = k(a_i, b_j) scale(a_i) scale(b_j) + offset.
struct KernelOperands {
  const KernelSpec& spec;
  const Samples& a;
  const Samples& b;
};

// Calls f with the type of the operands' raw values.
template <class F>
void with_raw_type(const KernelOperands& operands, F f) {
  switch (operands.b.raw_type(operands.a)) {
    case RawType::float32: return f(std::type_identity<float>{});
    case RawType::float64: return f(std::type_identity<double>{});
    case RawType::int32: return f(std::type_identity<std::int32_t>{});
    case RawType::uint8: return f(std::type_identity<std::uint8_t>{});
  }
}

// One thread's maker of kernel tiles.
template <class Raw, class Out>
class KernelTiles {
 public:
  explicit KernelTiles(const KernelOperands& operands)
      : operands_(operands), a_norms_(operands.a.expansion(operands.spec.comparison()).norms),
        expansion_(operands.b.expansion(operands.spec.comparison())),
        tiles_(dynamic_cast<const TileSource<Raw>&>(operands.b)
                   .row_tiles(operands.a, operands.spec.comparison())) {
    const double farthest = operands.a.expansion(operands.spec.comparison()).largest + expansion_.largest;
    if (uses_table && expansion_.norms && farthest <= DistanceTable::most && DistanceTable::worthwhile())
      table_.emplace(operands.spec, expansion_.unit);
    // No squared distance is above twice the sum of both norms.
    if (uses_factors && operands.spec.kind == Kernel::rbf && 2.0 * farthest <= FactorTable::most &&
        FactorTable::worthwhile())
      factors_.emplace(operands.spec.gamma * expansion_.unit);
  }

  // Chooses rows of a; `ids` must stay valid while they are in use.
  void load(const Index* ids, Index q) {
    ids_ = ids, q_ = q;
    tiles_->load(ids, q);
  }

  // Writes K(ids[k], j), begin <= j < end, to row_of(k)[j - begin].
  template <class RowOf>
  void evaluate(Index begin, Index end, RowOf row_of) {
    const Index width = end - begin;
    ld_ = round_up(width, tile_alignment);
    raw_.reserve(q_ * ld_);
    tiles_->fill(begin, end, raw_.data(), ld_);
    RowExpansion<Wide> expansion{.unit = expansion_.unit};
    if (expansion_.norms) {
      expansion.b_norm = convert(expansion_.norms, begin, width, b_norm_);
      expansion.weight = static_cast<Wide>(expansion_.weight);
    }
    const double *a_scales = operands_.a.scale(), *b_scales = operands_.b.scale();
    const Out* b_scale = b_scales ? convert(b_scales, begin, width, b_scale_) : nullptr;
    const bool plain = !a_scales && !b_scale && operands_.spec.offset == 0;
    rows_.resize(q_);
    for (Index k = 0; k < q_; ++k) rows_[k] = row_of(k);
    kernel_values(expansion, width);
    for (Index k = 0; k < q_ && !plain; ++k) {
      const double a_scale = a_scales ? a_scales[ids_[k]] : 1.0;
      scale_row<Out>(static_cast<Out>(a_scale), b_scale, static_cast<Out>(operands_.spec.offset), width, rows_[k]);
    }
  }

  // The same into a tile of the worker, row k at [k * row_stride()], with zeros after the last column.
  const Out* evaluate(Index begin, Index end) {
    const Index ld = round_up(end - begin, tile_alignment);
    Out* tile = values_tile(q_ * ld);
    evaluate(begin, end, [=](Index k) { return tile + k * ld; });
    for (Index k = 0; k < q_; ++k) std::fill_n(tile + k * ld + (end - begin), ld - (end - begin), Out(0));
    return tile;
  }
  Index row_stride() const { return ld_; }

 private:
  static constexpr bool bytes = std::is_same_v<Raw, std::uint8_t>, uses_table = bytes && std::is_same_v<Out, float>;
  static constexpr bool uses_factors = std::is_same_v<Raw, std::int32_t> && std::is_same_v<Out, float>;
  using Wide = std::conditional_t<bytes, std::int32_t, Raw>;  // bytes are widened to it

  // Raw values become kernel values, in rows_.
  void kernel_values(const RowExpansion<Wide>& expansion, Index width) {
    const Wide* norms = nullptr;
    if (a_norms_) {
      Wide* own = a_norm_.reserve(q_);
      for (Index k = 0; k < q_; ++k) own[k] = static_cast<Wide>(a_norms_[ids_[k]]);
      norms = own;
    }
    if constexpr (uses_table)
      if (table_) {
        for (Index k = 0; k < q_; ++k)
          table_->row(raw_.data() + k * ld_, norms[k], expansion.b_norm, width, rows_[k]);
        return;
      }
    if constexpr (uses_factors)
      if (factors_) return factors_->rows(raw_.data(), ld_, norms, expansion.b_norm, q_, width, rows_.data());
    const Wide* wide;
    if constexpr (bytes) {
      widen_row(raw_.data(), q_ * ld_, wide_.reserve(q_ * ld_));
      wide = wide_.data();
    } else {
      wide = raw_.data();
    }
    kernel_rows<Wide, Out>(operands_.spec, {wide, ld_, norms}, expansion, q_, width, rows_.data());
  }

  template <class To>
  static const To* convert(const double* values, Index begin, Index count, AlignedBuffer<To>& buffer) {
    To* out = buffer.reserve(count);
    for (Index j = 0; j < count; ++j) out[j] = static_cast<To>(values[begin + j]);
    return out;
  }

  // Raw values become kernel values in place if the types allow.
  Out* values_tile(Index size) {
    if constexpr (std::is_same_v<Raw, Out>)
      return raw_.reserve(size);
    else
      return values_.reserve(size);
  }

  const KernelOperands& operands_;
  const double* a_norms_;
  Expansion expansion_;
  std::unique_ptr<RowTiles<Raw>> tiles_;
  std::optional<DistanceTable> table_;
  std::optional<FactorTable> factors_;
  const Index* ids_ = nullptr;
  Index q_ = 0, ld_ = 0;
  AlignedBuffer<Raw> raw_;
  AlignedBuffer<Wide> a_norm_, b_norm_, wide_;
  std::vector<Out*> rows_;  // of the results
  AlignedBuffer<Out> values_, b_scale_;
};

// What values of a result of type Out are computed in.
template <class Out>
using ValueOf = std::conditional_t<std::is_same_v<Out, Fixed16>, float, Out>;

// Rows of a result matrix, chosen in any order.
template <class Out>
struct OutRows {
  Out* data;
  Index stride;       // from one row of the matrix to the next
  const Index* rows;  // the k-th result goes to row rows[k]
};

// The tile of columns from..to-1, row k to row_of(k), in the type of the result.
template <class Raw, class Out, class RowOf>
void store_tile(KernelTiles<Raw, ValueOf<Out>>& tiles, Index rows, Index from, Index to, RowOf row_of) {
  if constexpr (std::is_same_v<ValueOf<Out>, Out>) {
    tiles.evaluate(from, to, row_of);
  } else {
    const auto* values = tiles.evaluate(from, to);
    for (Index k = 0; k < rows; ++k) store_row(values + k * tiles.row_stride(), to - from, row_of(k));
  }
}

// out row k [j - begin] = K(ids[k], j) for k < q, begin <= j < end, on n_threads threads.
template <class Raw, class Out>
void kernel_block_as(const KernelOperands& operands, const Index* ids, Index q, Index begin, Index end,
                     OutRows<Out> out, int n_threads) {
  const TileShape shape = operands.b.tile_shape(q, end - begin, true);
  const Index chunks = (q + shape.rows - 1) / shape.rows;
  const Index strips = (end - begin + shape.columns - 1) / shape.columns;
  const double flops = operands.b.value_flops(operands.a) * static_cast<double>(q) * static_cast<double>(end - begin);
  operands.b.pack(n_threads);
  parallel_tasks(chunks * strips, worthwhile_threads(n_threads, flops), [&] {
    return [&, tiles = KernelTiles<Raw, ValueOf<Out>>(operands), loaded = Index{-1}](Index task) mutable {
      const Index chunk = task / strips, first = chunk * shape.rows, rows = std::min(shape.rows, q - first);
      if (chunk != loaded) tiles.load(ids + first, rows);
      loaded = chunk;
      const Index from = begin + task % strips * shape.columns, to = std::min(from + shape.columns, end);
      auto row_of = [&](Index k) { return out.data + out.rows[first + k] * out.stride + (from - begin); };
      store_tile<Raw, Out>(tiles, rows, from, to, row_of);
    };
  });
}

// out[i, j] = out[j, i] for the rows begin..end-1 and the columns from `end` on.
template <class Out>
void mirror_rows(Out* out, Index stride, Index begin, Index end, Index n) {
  constexpr Index width = 16;  // columns at a time: their rows stay in the first-level cache
  for (Index first = end; first < n; first += width)
    for (Index i = begin; i < end; ++i)
      for (Index j = first; j < std::min(first + width, n); ++j) out[i * stride + j] = out[j * stride + i];
}

// out[i, j] = K(i, j) between all samples: K is symmetric, so that half of the values are copies.
template <class Raw, class Out>
void kernel_square_as(const KernelOperands& operands, Out* out, Index stride, int n_threads) {
  const Index n = operands.a.n();
  const TileShape shape = operands.b.tile_shape(n, n, true);
  const Index chunks = (n + shape.rows - 1) / shape.rows;
  const double flops = 0.5 * operands.b.value_flops(operands.a) * static_cast<double>(n) * static_cast<double>(n);
  const int threads = worthwhile_threads(n_threads, flops);
  std::vector<Index> ids(n);
  std::iota(ids.begin(), ids.end(), Index{0});
  operands.b.pack(n_threads);
  parallel_tasks(chunks, threads, [&] {
    return [&, tiles = KernelTiles<Raw, ValueOf<Out>>(operands)](Index task) mutable {
      const Index first = (chunks - 1 - task) * shape.rows;  // the longest rows first
      const Index last = std::min(first + shape.rows, n);
      tiles.load(ids.data() + first, last - first);
      for (Index from = 0; from < last; from += shape.columns) {
        auto row_of = [&](Index k) { return out + (first + k) * stride + from; };
        store_tile<Raw, Out>(tiles, last - first, from, std::min(from + shape.columns, last), row_of);
      }
    };
  });
  const int copying = worthwhile_threads(threads, static_cast<double>(n) * static_cast<double>(n));
  parallel_ranges(n, shape.rows, copying, [&](Index begin, Index end) { mirror_rows(out, stride, begin, end, n); });
}

template <class Out>
void kernel_block(const KernelOperands& operands, const Index* ids, Index q, Index begin, Index end, OutRows<Out> out,
                  int n_threads) {
  if (q == 0 || begin == end) return;
  with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
    kernel_block_as<Raw, Out>(operands, ids, q, begin, end, out, n_threads);
  });
}

template <class Out>
void kernel_square(const KernelOperands& operands, Out* out, Index stride, int n_threads) {
  with_raw_type(operands, [&]<class Raw>(std::type_identity<Raw>) {
    kernel_square_as<Raw, Out>(operands, out, stride, n_threads);
  });
}

}  // namespace multimargin::kernel
