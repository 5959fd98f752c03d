// Dense samples, one row after the other; inner products by BLAS. For a few rows, own loops are faster than BLAS, which
// would mostly spend its time packing.
#pragma once

#include "base/aligned_buffer.hpp"
#include "base/blas.hpp"
#include "samples/samples.hpp"

namespace multimargin::samples {

// tile[k * ld + j] = sum over features of comparison_term(rows[k], b[j]): four rows of b at a time, each read once for
// all k. For a few rows this runs at memory speed.
template <Comparison comparison, class T>
MULTIMARGIN_CLONES void compare_rows(const T* rows, Index q, const T* b, Index width, Index d, T* tile, Index ld) {
  Index j = 0;
  for (; j + 4 <= width; j += 4) {
    const T *b0 = b + j * d, *b1 = b0 + d, *b2 = b1 + d, *b3 = b2 + d;
    for (Index k = 0; k < q; ++k) {
      const T* a = rows + k * d;
      T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
      for (Index f = 0; f < d; ++f) {
        s0 += comparison_term<comparison>(a[f], b0[f]);
        s1 += comparison_term<comparison>(a[f], b1[f]);
        s2 += comparison_term<comparison>(a[f], b2[f]);
        s3 += comparison_term<comparison>(a[f], b3[f]);
      }
      T* out = tile + k * ld + j;
      out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
    }
  }
  for (; j < width; ++j) {
    for (Index k = 0; k < q; ++k) {
      const T *a = rows + k * d, *bj = b + j * d;
      T s = 0;
#pragma omp simd reduction(+ : s)
      for (Index f = 0; f < d; ++f) s += comparison_term<comparison>(a[f], bj[f]);
      tile[k * ld + j] = s;
    }
  }
}

// norms[i] = |x_i|^2 in double.
template <class T>
MULTIMARGIN_CLONES void row_squared_norms(const T* x, Index n, Index d, double* norms) {
  for (Index i = 0; i < n; ++i) {
    const T* row = x + i * d;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index f = 0; f < d; ++f) sum += static_cast<double>(row[f]) * static_cast<double>(row[f]);
    norms[i] = sum;
  }
}

template <class T>
class DenseProduct final : public FloatSamples<DenseProduct<T>, T> {
 public:
  // x: n rows of d values; `owner` keeps them alive.
  DenseProduct(const T* x, Index n, Index d, std::shared_ptr<const void> owner)
      : FloatSamples<DenseProduct, T>(n, d), x_(x), owner_(std::move(owner)) {}

  std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const override {
    auto copy = std::make_shared<std::vector<T>>(count * this->d());
    gather(ids, count, copy->data());
    return std::make_unique<DenseProduct>(copy->data(), count, this->d(), copy);
  }

  bool comparable_with(const Samples& other) const override {
    return dynamic_cast<const DenseProduct*>(&other) != nullptr;
  }

  Expansion expansion(Comparison comparison) const override {
    if (comparison != Comparison::squared_distance) return {};
    return {this->norms(comparison), -2.0};
  }

  TileShape tile_shape(Index q, Index width, bool split_rows) const override {
    return dense_tile_shape(q, width, split_rows, 256);
  }

  double value_flops(const Samples&) const override { return 2.0 * this->d() + this->transform_flops; }

  template <class Raw>
  class Tiles final : public RowTiles<T> {
   public:
    Tiles(const DenseProduct& a, const DenseProduct& b, Comparison comparison)
        : a_(a), b_(b), comparison_(comparison) {
      blas::require<T>();
    }

    void load(const Index* ids, Index q) override {
      q_ = q;
      const bool consecutive = std::adjacent_find(ids, ids + q, [](Index i, Index j) { return j != i + 1; }) == ids + q;
      if (consecutive) {
        rows_ = a_.x_ + ids[0] * a_.d();
      } else {
        T* packed = packed_.reserve(q * a_.d());
        a_.gather(ids, q, packed);
        rows_ = packed;
      }
    }

    void fill(Index begin, Index end, T* tile, Index ld) override {
      const Index d = b_.d(), width = end - begin;
      const T* b = b_.x_ + begin * d;
      if (comparison_ == Comparison::l1_distance)
        compare_rows<Comparison::l1_distance>(rows_, q_, b, width, d, tile, ld);
      else if (few_rows(q_, d))
        compare_rows<Comparison::product>(rows_, q_, b, width, d, tile, ld);
      else
        blas::gemm<T>(false, true, q_, width, d, 1, rows_, d, b, d, 0, tile, ld);
    }

   private:
    // Whether own loops are faster than BLAS. Below about 16 features per row, adding up the SIMD lanes costs more.
    static bool few_rows(Index q, Index d) { return q <= std::min<Index>(8, d / 16); }

    const DenseProduct &a_, &b_;
    Comparison comparison_;
    Index q_ = 0;
    const T* rows_ = nullptr;
    AlignedBuffer<T> packed_;
  };

 protected:
  std::vector<double> compute_norms(Comparison) const override {
    std::vector<double> norms(this->n());
    row_squared_norms(x_, this->n(), this->d(), norms.data());
    return norms;
  }

 private:
  void gather(const Index* ids, Index count, T* rows) const {
    const Index d = this->d();
    for (Index k = 0; k < count; ++k) std::copy_n(x_ + ids[k] * d, d, rows + k * d);
  }

  const T* x_;
  std::shared_ptr<const void> owner_;
};

}  // namespace multimargin::samples
