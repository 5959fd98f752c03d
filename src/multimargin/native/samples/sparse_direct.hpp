// Sparse samples whose distances are sums over the features that either of two rows has. No large norms cancel, so they
// are exact for any offset; the work is proportional to the entries of both rows, not of their common features alone.
#pragma once

#include "samples/sparse_samples.hpp"

namespace multimargin::samples {

// Sparse samples of any types that are compared by differences.
class SparseDirectRows {
 public:
  virtual ~SparseDirectRows() = default;
};

template <class T, class I>
class SparseDirect final : public CompressedRows<SparseDirect<T, I>, T, I>, public SparseDirectRows {
 public:
  using CompressedRows<SparseDirect, T, I>::CompressedRows;

  bool comparable_with(const Samples& other) const override {
    return dynamic_cast<const SparseDirectRows*>(&other) != nullptr;
  }

  TileShape tile_shape(Index, Index width, bool split_rows) const override {
    return {1, shared_columns(width, split_rows ? 4 : 1, 256, 4096)};
  }

  double value_flops(const Samples& a) const override {
    return this->transform_flops + 4 * (this->entries_per_row(a) + this->entries_per_row(*this));
  }

  std::unique_ptr<RowTiles<double>> row_tiles(const Samples& a, Comparison comparison) const override {
    if (comparison == Comparison::product) throw std::invalid_argument("sparse_direct samples have distances only");
    return std::make_unique<Tiles>(static_cast<const SparseRows&>(a), *this, comparison);
  }

 private:
  class Tiles final : public RowTiles<double> {
   public:
    Tiles(const SparseRows& a, const SparseDirect& b, Comparison comparison)
        : a_(a), b_(b), comparison_(comparison), dense_(b.d(), 0.0), seen_(b.d(), 0) {}

    void load(const Index* ids, Index q) override { ids_.assign(ids, ids + q); }

    void fill(Index begin, Index end, double* tile, Index ld) override {
      if (comparison_ == Comparison::l1_distance)
        fill_by<Comparison::l1_distance>(begin, end, tile, ld);
      else
        fill_by<Comparison::squared_distance>(begin, end, tile, ld);
    }

   private:
    template <Comparison comparison>
    void fill_by(Index begin, Index end, double* tile, Index ld) {
      for (std::size_t k = 0; k < ids_.size(); ++k) {
        a_.copy_row(ids_[k], row_);
        for (const auto& [feature, value] : row_) dense_[feature] = value;
        double* out = tile + static_cast<Index>(k) * ld;
        for (Index j = begin; j < end; ++j) out[j - begin] = distance<comparison>(j);
        for (const auto& [feature, value] : row_) dense_[feature] = 0;
      }
    }

    // Between the loaded row of a and row j of b: the features of b first, then those that only a has.
    template <Comparison comparison>
    double distance(Index j) {
      double sum = 0;
      ++visit_;
      for (Index p = b_.rows_.begin(j); p < b_.rows_.end(j); ++p) {
        const auto feature = b_.rows_.indices[p];
        sum += comparison_term<comparison>(dense_[feature], static_cast<double>(b_.rows_.data[p]));
        seen_[feature] = visit_;
      }
      for (const auto& [feature, value] : row_)
        if (seen_[feature] != visit_) sum += comparison_term<comparison>(value, 0.0);
      return sum;
    }

    const SparseRows& a_;
    const SparseDirect& b_;
    Comparison comparison_;
    std::vector<Index> ids_;
    std::vector<SparseRows::Entry> row_;
    std::vector<double> dense_;  // the loaded row of a
    std::vector<Index> seen_;    // the last visit to a row of b that has this feature
    Index visit_ = 0;
  };
};

}  // namespace multimargin::samples
