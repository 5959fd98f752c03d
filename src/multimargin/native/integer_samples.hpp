// Dense samples of 8 or 16-bit integers: value = scale * integer. Pair values are exact: in 32 bits
// where squared distances fit, otherwise summed over stretches of features and added up in double.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "aligned_buffer.hpp"
#include "integer_groups.hpp"
#include "integer_rows.hpp"
#include "samples.hpp"

namespace multimargin {

// Bounds that keep 32-bit sums exact.
struct IntegerBounds {
  bool narrow;    // |a|^2 + |b|^2 - 2<a,b> fits 32 bits
  Index stretch;  // features whose products can be summed in 32 bits

  bool operator==(const IntegerBounds&) const = default;
};

// |a|^2 < 2^29 for all samples: then every squared distance is below 2^31.
inline constexpr double narrow_norm = 1 << 29;
inline constexpr double sum_limit = 2147483648.0;

// sums[i] = sum over features of x_if^2, i < n; energy = the largest sum over any of the stretches of
// `stretch` features that begin at its multiples.
template <class S>
MULTIMARGIN_CLONES double row_energies(const S* x, Index n, Index d, Index stretch, double* sums) {
  std::int64_t largest = 0;
  for (Index i = 0; i < n; ++i) {
    std::int64_t total = 0;
    for (Index first = 0; first < d; first += stretch) {
      const Index last = first + stretch < d ? first + stretch : d;
      std::int64_t sum = 0;
      for (Index f = first; f < last; ++f) sum += static_cast<std::int64_t>(x[i * d + f] * x[i * d + f]);
      largest = sum > largest ? sum : largest;
      total += sum;
    }
    sums[i] = static_cast<double>(total);
  }
  return static_cast<double>(largest);
}

// sums[l] += part[l] for one panel: exact while sums stay below 2^53.
MULTIMARGIN_CLONES inline void add_panel(const std::int32_t* part, double* sums) {
#pragma omp simd
  for (Index l = 0; l < integer_panel; ++l) sums[l] += part[l];
}

template <class S>
class IntegerSamples final : public Samples, public TileSource<std::int32_t>, public TileSource<double> {
 public:
  // x: n rows of d integers, none below -32767; `owner` keeps them alive.
  IntegerSamples(const S* x, Index n, Index d, double scale, std::shared_ptr<const void> owner)
      : IntegerSamples(x, n, d, scale, group_format<S>(integer_simd), find_bounds(x, n, d), std::move(owner)) {}

  std::unique_ptr<Samples> take(const Index* ids, Index count) const override {
    auto copy = std::make_shared<std::vector<S>>(count * d());
    for (Index k = 0; k < count; ++k) std::copy_n(x_ + ids[k] * d(), d(), copy->data() + k * d());
    return std::unique_ptr<Samples>(
        new IntegerSamples(copy->data(), count, d(), scale_, format_, bounds_, copy));
  }

  bool pairs_with(const Samples& other) const override {
    const auto* same = dynamic_cast<const IntegerSamples*>(&other);
    return same && same->format_ == format_ && same->scale_ == scale_;
  }

  RawType raw_type(const Samples& a) const override {
    return bounds_.narrow && static_cast<const IntegerSamples&>(a).bounds_.narrow ? RawType::int32 : RawType::float64;
  }

  Expansion expansion(Pair pair) const override {
    if (pair == Pair::l1_distance) throw std::logic_error("integer products give no L1 distance");
    return {pair == Pair::product ? nullptr : squared_norms().data(), -2.0, scale_ * scale_};
  }

  TileShape tile_shape(Index q, Index width, bool split_rows) const override {
    const Index rows = std::min<Index>(q, 128), chunks = split_rows ? (q + rows - 1) / rows : 1;
    return {rows, shared_columns(width, chunks, 256, 512)};
  }

  double pair_flops(const Samples&) const override { return 0.5 * static_cast<double>(d()) + transform_flops; }

  std::unique_ptr<PairTiles<std::int32_t>> pair_tiles(const Samples& a, Pair, std::type_identity<std::int32_t>) const override {
    return std::make_unique<Tiles<std::int32_t>>(static_cast<const IntegerSamples&>(a), *this);
  }

  std::unique_ptr<PairTiles<double>> pair_tiles(const Samples& a, Pair, std::type_identity<double>) const override {
    return std::make_unique<Tiles<double>>(static_cast<const IntegerSamples&>(a), *this);
  }

 protected:
  std::vector<double> compute_squared_norms() const override {
    std::vector<double> norms(n());
    row_energies(x_, n(), d(), d(), norms.data());
    return norms;
  }

 private:
  static constexpr Index line_bytes_of(Index group) { return integer_panel * group * Index{sizeof(S)}; }

  IntegerSamples(const S* x, Index n, Index d, double scale, GroupFormat format, IntegerBounds bounds,
                 std::shared_ptr<const void> owner)
      : Samples(n, d),
        x_(x),
        owner_(std::move(owner)),
        scale_(scale),
        format_(format),
        bounds_(bounds),
        line_bytes_(line_bytes_of(format.group)),
        panel_bytes_((d + format.group - 1) / format.group * line_bytes_) {
    if (panel_bytes_ > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("integer samples: too many features");
    pack();
  }

  static IntegerBounds find_bounds(const S* x, Index n, Index d) {
    if constexpr (sizeof(S) == 1) {
      const double most = std::is_signed_v<S> ? 128.0 * 128.0 : 255.0 * 255.0;
      if (most * static_cast<double>(d) < narrow_norm) return {true, d};
    } else {
      if (std::find(x, x + n * d, std::numeric_limits<S>::min()) != x + n * d)
        throw std::invalid_argument("integer samples: values must lie in -32767..32767");
    }
    std::vector<double> norms(n);
    row_energies(x, n, d, d, norms.data());
    const double largest = norms.empty() ? 0.0 : *std::max_element(norms.begin(), norms.end());
    if (largest < narrow_norm) return {true, d};
    if constexpr (sizeof(S) == 1) return {false, Index{1} << 15};
    // |sum over a stretch of a_f b_f|^2 <= its energy in a times its energy in b (Cauchy-Schwarz).
    Index parts = 2, stretch = d;
    do {
      stretch = std::max<Index>(2, d / parts / 2 * 2);
      parts += 1 + parts / 8;
    } while (stretch > 2 && row_energies(x, n, d, stretch, norms.data()) >= sum_limit);
    return {false, stretch};
  }

  // The panels: line g of panel p holds features group*g.. of samples 64p.., sample by sample.
  void pack() {
    const Index group = format_.group, panels = (n() + integer_panel - 1) / integer_panel;
    S* packed = reinterpret_cast<S*>(packed_.reserve(panels * panel_bytes_));
    const Index groups = panel_bytes_ / line_bytes_;
    const S shift = static_cast<S>(format_.shift);
    for (Index p = 0; p < panels; ++p) {
      S* panel = packed + p * (panel_bytes_ / Index{sizeof(S)});
      for (Index l = 0; l < integer_panel; ++l) {
        const Index i = p * integer_panel + l;
        for (Index g = 0; g < groups; ++g) {
          S* to = panel + (g * integer_panel + l) * group;
          for (Index e = 0; e < group; ++e) {
            const Index f = g * group + e;
            to[e] = static_cast<S>((i < n() && f < d() ? x_[i * d() + f] : S(0)) - shift);
          }
        }
      }
    }
  }

  // Stretches of a panel stay in the first-level cache while all rows pass over them.
  static Index common_stretch(const IntegerSamples& a, const IntegerSamples& b) {
    constexpr Index first_level_bytes = 24 << 10;
    return std::min({a.bounds_.stretch, b.bounds_.stretch, first_level_bytes / b.line_bytes_ * b.format_.group});
  }

  template <class Raw>
  class Tiles final : public PairTiles<Raw> {
   public:
    Tiles(const IntegerSamples& a, const IntegerSamples& b)
        : a_(a), b_(b), rows_(b.format_, b.d(), b.line_bytes_, common_stretch(a, b)) {}

    void load(const Index* ids, Index q) override {
      q_ = q;
      rows_.load(q, [&](Index k) { return a_.x_ + ids[k] * a_.d(); });
    }

    void fill(Index begin, Index end, Raw* tile, Index ld) override {
      fill_by_panels(integer_panel, q_, begin, end, tile, ld, edge_, [&](Index panel, Raw* out, Index step) {
        fill_panel(b_.packed_.data() + panel * b_.panel_bytes_, out, step);
      });
    }

   private:
    // tile[k * ld + l] = <row k, column l of the panel>.
    void fill_panel(const unsigned char* panel, Raw* tile, Index ld) {
      for (Index k = 0; k < q_; ++k) std::fill_n(tile + k * ld, integer_panel, static_cast<Raw>(rows_.shift(k)));
      for (Index s = 0; s < rows_.stretches(); ++s)
        for (Index block = 0; block < rows_.blocks(); ++block) add(block, s, panel, tile + rows_.first_row(block) * ld, ld);
    }

    void add(Index block, Index s, const unsigned char* panel, Raw* sums, Index ld) {
      if constexpr (std::is_same_v<Raw, std::int32_t>) {
        rows_.add(block, s, panel, sums, ld);
      } else {
        alignas(64) std::int32_t part[joint_rows * integer_panel] = {};
        rows_.add(block, s, panel, part, integer_panel);
        for (int r = 0; r < rows_.rows(block); ++r) add_panel(part + r * integer_panel, sums + r * ld);
      }
    }

    const IntegerSamples &a_, &b_;
    Index q_ = 0;
    GroupLists<S> rows_;
    AlignedBuffer<Raw> edge_;
  };

  const S* x_;
  std::shared_ptr<const void> owner_;
  double scale_;
  GroupFormat format_;
  IntegerBounds bounds_;
  Index line_bytes_, panel_bytes_;
  AlignedBuffer<unsigned char> packed_;
};

}  // namespace multimargin
