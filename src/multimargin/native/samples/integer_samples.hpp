// Dense samples of 8 or 16-bit integers: value = scale * integer. Compared values are exact: in 32 bits if squared
// distances fit, otherwise summed in double.
#pragma once

#include "base/aligned_buffer.hpp"
#include "samples/integer_groups.hpp"
#include "samples/integer_panels.hpp"
#include "samples/integer_rows.hpp"
#include "samples/samples.hpp"

namespace multimargin::samples {

// If |a|^2 is below this for all samples, every squared distance fits 32 bits.
inline constexpr double narrow_norm = 1 << 29;

// norms[i] = sum over features of x_if^2, i < n; the largest |x_if| is returned.
template <class S>
MULTIMARGIN_CLONES std::int32_t integer_norms(const S* x, Index n, Index d, double* norms) {
  std::int32_t low = 0, high = 0;
  for (Index i = 0; i < n; ++i) {
    std::int64_t sum = 0;
    for (Index f = 0; f < d; ++f) {
      const std::int32_t value = x[i * d + f];
      sum += value * value;
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    norms[i] = static_cast<double>(sum);
  }
  return high > -low ? high : -low;
}

template <class S>
class IntegerSamples final : public Samples,
                             public TilesOf<IntegerSamples<S>, std::int32_t>,
                             public TilesOf<IntegerSamples<S>, double> {
 public:
  // x: n rows of d integers, none below -32767; `owner` keeps them alive.
  IntegerSamples(const S* x, Index n, Index d, double scale, std::shared_ptr<const void> owner)
      : IntegerSamples(x, n, d, scale, group_format<S>(integer_simd), measure(x, n, d), std::move(owner)) {}

  std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const override {
    auto copy = std::make_shared<std::vector<S>>(count * d());
    Measures measures{bounds_, std::vector<double>(count)};
    const double* norms = this->norms(Comparison::squared_distance);
    for (Index k = 0; k < count; ++k) {
      std::copy_n(x_ + ids[k] * d(), d(), copy->data() + k * d());
      measures.norms[k] = norms[ids[k]];
    }
    return std::unique_ptr<Samples>(
        new IntegerSamples(copy->data(), count, d(), scale_, format_, std::move(measures), copy));
  }

  bool comparable_with(const Samples& other) const override {
    const auto* same = dynamic_cast<const IntegerSamples*>(&other);
    return same && same->format_ == format_ && same->scale_ == scale_;
  }

  RawType raw_type(const Samples& a) const override {
    return bounds_.narrow && static_cast<const IntegerSamples&>(a).bounds_.narrow ? RawType::int32 : RawType::float64;
  }

  Expansion expansion(Comparison comparison) const override {
    if (comparison == Comparison::l1_distance) throw std::invalid_argument("integer products give no L1 distance");
    return {comparison == Comparison::product ? nullptr : this->norms(comparison), -2.0, scale_ * scale_,
            bounds_.norm};
  }

  TileShape tile_shape(Index q, Index width, bool split_rows) const override {
    // Tiles that are used at once, and rows that stay loaded for the next: they fit the first-level cache.
    const Index rows = std::min<Index>(q, 128);
    if (!split_rows) return {rows, integer_panel};
    return {rows, shared_columns(width, (q + rows - 1) / rows, 256, 512)};
  }

  void pack(int n_threads) const override { panels(n_threads); }

  double value_flops(const Samples&) const override { return 0.5 * static_cast<double>(d()) + transform_flops; }

  template <class Raw>
  class Tiles final : public RowTiles<Raw> {
   public:
    Tiles(const IntegerSamples& a, const IntegerSamples& b, Comparison)
        : a_(a), b_(b), panels_(b.panels()), rows_(b.format_, b.d(), b.line_bytes_, b.cached_stretch()) {
      // A shifted byte is at most as large as an unshifted one.
      const Index largest = std::max<Index>({a.bounds_.largest, b.bounds_.largest, b.format_.shift, 1});
      period_ = ((Index{1} << 31) - (Index{1} << 16)) / (b.format_.group * largest * largest);
    }

    void load(const Index* ids, Index q) override {
      q_ = q;
      rows_.load(q, [&](Index k) { return a_.x_ + ids[k] * a_.d(); });
    }

    void fill(Index begin, Index end, Raw* tile, Index ld) override {
      fill_by_panels(integer_panel, q_, begin, end, tile, ld, edge_, [&](Index panel, Raw* out, Index step) {
        fill_panel(panels_ + panel * b_.panel_bytes_, out, step);
      });
    }

   private:
    // tile[k * ld + l] = <row k, column l of the panel>.
    void fill_panel(const unsigned char* panel, Raw* tile, Index ld) {
      for (Index k = 0; k < q_; ++k) std::fill_n(tile + k * ld, integer_panel, static_cast<Raw>(rows_.shift(k)));
      for (Index s = 0; s < rows_.stretches(); ++s)
        for (Index block = 0; block < rows_.blocks(); ++block)
          rows_.add(block, s, panel, tile + rows_.first_row(block) * ld, ld, period_);
    }

    const IntegerSamples &a_, &b_;
    const unsigned char* panels_;  // of b
    Index q_ = 0, period_;  // groups whose products fit 32 bits
    GroupLists<S> rows_;
    AlignedBuffer<Raw> edge_;
  };

 private:
  struct Bounds {
    bool narrow;           // squared distances fit 32 bits
    std::int32_t largest;  // absolute value
    double norm;           // the largest |x|^2
  };

  struct Measures {
    Bounds bounds;
    std::vector<double> norms;
  };

  static constexpr Index line_bytes_of(Index group) { return integer_panel * group * Index{sizeof(S)}; }

  IntegerSamples(const S* x, Index n, Index d, double scale, GroupFormat format, Measures measures,
                 std::shared_ptr<const void> owner)
      : Samples(n, d), x_(x), owner_(std::move(owner)), scale_(scale), format_(format), bounds_(measures.bounds),
        line_bytes_(line_bytes_of(format.group)), panel_bytes_((d + format.group - 1) / format.group * line_bytes_) {
    if (panel_bytes_ > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("integer samples: too many features");
    this->keep_norms(Comparison::squared_distance, std::move(measures.norms));
  }

  static Measures measure(const S* x, Index n, Index d) {
    std::vector<double> norms(n);
    const std::int32_t largest = integer_norms(x, n, d, norms.data());
    if (largest > std::numeric_limits<std::int16_t>::max())
      throw std::invalid_argument("integer samples: values must lie in -32767..32767");
    const double norm = norms.empty() ? 0.0 : *std::max_element(norms.begin(), norms.end());
    return {{norm < narrow_norm, largest, norm}, std::move(norms)};
  }

  // The samples as columns, packed at the first use: samples that are only rows of a product do not need it.
  const unsigned char* panels(int n_threads = 1) const {
    std::call_once(packed_once_, [&] {
      const Index size = round_up(n(), integer_panel) / integer_panel * panel_bytes_;
      S* panels = reinterpret_cast<S*>(packed_.reserve(size));
      with_group_size(format_.group, [&]<int group>(std::integral_constant<int, group>) {
        pack_panels<group>(x_, n(), d(), static_cast<S>(format_.shift), panels, n_threads);
      });
    });
    return packed_.data();
  }

  // Features whose lines stay in a core's own cache while all rows pass over them. It is the second level: a line has
  // so many uses that its way from there does not show, and every stretch costs a pass over the sums.
  Index cached_stretch() const {
    constexpr Index own_cache_bytes = 128 << 10;
    return std::min(d(), own_cache_bytes / line_bytes_ * format_.group);
  }

  const S* x_;
  std::shared_ptr<const void> owner_;
  double scale_;
  GroupFormat format_;
  Bounds bounds_;
  Index line_bytes_, panel_bytes_;
  mutable std::once_flag packed_once_;
  mutable AlignedBuffer<unsigned char> packed_;
};

}  // namespace multimargin::samples
