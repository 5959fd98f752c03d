// Dense samples stored feature-major (d x n): differences or products are accumulated directly, with SIMD across
// samples. No large norms cancel, and no BLAS is needed; best for few features.
#pragma once

#include "base/aligned_buffer.hpp"
#include "samples/samples.hpp"

namespace multimargin::samples {

// Samples side by side in one panel.
inline constexpr Index panel_width = tile_alignment;

// sums[l] += sum over `count` features f of comparison_term(a[f], b[f * ldb + l]), l < panel_width.
template <Comparison comparison, int count, class T>
MULTIMARGIN_INLINE void add_features(const T* a, const T* b, Index ldb, T* sums) {
#pragma omp simd
  for (Index l = 0; l < panel_width; ++l) {
    T sum = sums[l];
    for (int f = 0; f < count; ++f) sum += comparison_term<comparison>(a[f], b[f * ldb + l]);
    sums[l] = sum;
  }
}

// One panel of b against q rows (q x d): tile[k * ld + l] = sum over features f of
// comparison_term(rows[k][f], b[f * ldb + l]), l < panel_width; four features per pass over the sums.
template <Comparison comparison, class T>
MULTIMARGIN_CLONES void panel_tile(const T* rows, Index q, const T* b, Index ldb, Index d, T* tile, Index ld) {
  for (Index k = 0; k < q; ++k) {
    const T* a = rows + k * d;
    T* sums = tile + k * ld;
    for (Index l = 0; l < panel_width; ++l) sums[l] = T(0);
    Index f = 0;
    for (; f + 4 <= d; f += 4) add_features<comparison, 4>(a + f, b + f * ldb, ldb, sums);
    for (; f < d; ++f) add_features<comparison, 1>(a + f, b + f * ldb, ldb, sums);
  }
}

template <class T>
class DenseDirect final : public FloatSamples<DenseDirect<T>, T> {
 public:
  // xt: d rows of n values; `owner` keeps them alive.
  DenseDirect(const T* xt, Index n, Index d, std::shared_ptr<const void> owner)
      : FloatSamples<DenseDirect, T>(n, d), xt_(xt), owner_(std::move(owner)) {}

  std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const override {
    auto copy = std::make_shared<std::vector<T>>(count * this->d());
    for (Index f = 0; f < this->d(); ++f)
      for (Index k = 0; k < count; ++k) (*copy)[f * count + k] = xt_[f * this->n() + ids[k]];
    return std::make_unique<DenseDirect>(copy->data(), count, this->d(), copy);
  }

  bool comparable_with(const Samples& other) const override {
    return dynamic_cast<const DenseDirect*>(&other) != nullptr;
  }

  TileShape tile_shape(Index q, Index width, bool split_rows) const override {
    return dense_tile_shape(q, width, split_rows, 64);
  }

  double value_flops(const Samples&) const override { return 3.0 * this->d() + this->transform_flops; }

  template <class Raw>
  class Tiles final : public RowTiles<T> {
   public:
    Tiles(const DenseDirect& a, const DenseDirect& b, Comparison comparison) : a_(a), b_(b), comparison_(comparison) {}

    void load(const Index* ids, Index q) override {
      const Index d = a_.d();
      q_ = q;
      T* rows = rows_.reserve(q * d);
      for (Index f = 0; f < d; ++f)
        for (Index k = 0; k < q; ++k) rows[k * d + f] = a_.xt_[f * a_.n() + ids[k]];
    }

    void fill(Index begin, Index end, T* tile, Index ld) override {
      switch (comparison_) {
        case Comparison::product: return fill_panels<Comparison::product>(begin, end, tile, ld);
        case Comparison::squared_distance: return fill_panels<Comparison::squared_distance>(begin, end, tile, ld);
        case Comparison::l1_distance: return fill_panels<Comparison::l1_distance>(begin, end, tile, ld);
      }
    }

   private:
    static constexpr Index few_rows = 3;  // so few uses of a panel do not repay packing it

    template <Comparison comparison>
    void fill_panels(Index begin, Index end, T* tile, Index ld) {
      for (Index j = begin; j < end; j += panel_width) {
        const bool whole = j + panel_width <= end;
        T* out = tile + (j - begin);
        if (whole && q_ <= few_rows)
          panel_tile<comparison>(rows_.data(), q_, b_.xt_ + j, b_.n(), b_.d(), out, ld);
        else
          panel_tile<comparison>(rows_.data(), q_, pack(j, std::min(panel_width, end - j)), panel_width, b_.d(), out,
                                 ld);
      }
    }

    // The features of samples j..j+count-1, one panel wide and padded with zeros.
    const T* pack(Index j, Index count) {
      T* packed = panel_.reserve(panel_width * b_.d());
      for (Index f = 0; f < b_.d(); ++f) {
        std::copy_n(b_.xt_ + f * b_.n() + j, count, packed + f * panel_width);
        std::fill_n(packed + f * panel_width + count, panel_width - count, T(0));
      }
      return packed;
    }

    const DenseDirect &a_, &b_;
    Comparison comparison_;
    Index q_ = 0;
    AlignedBuffer<T> rows_, panel_;
  };

 private:
  const T* xt_;
  std::shared_ptr<const void> owner_;
};

}  // namespace multimargin::samples
