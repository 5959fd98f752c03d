// Samples: n immutable rows of d features, and tiles of compared values (inner products or distances) between the rows
// of two of them. The concrete kinds are in dense_product.hpp, dense_direct.hpp, integer_samples.hpp,
// binary_samples.hpp and sparse_samples.hpp. kernel/kernel_block.hpp turns tiles into kernel values.
#pragma once

#include <mutex>

#include "base/aligned_buffer.hpp"
#include "samples/comparison.hpp"

namespace multimargin::samples {

// The types of raw compared values.
enum class RawType { float32, float64, int32, uint8 };

// Compared value = unit * (norms_a + norms_b + weight * raw), where raw is only the mixed term of a distance, such as
// <a,b> in |a-b|^2 = |a|^2 + |b|^2 - 2 <a,b>. If norms is null, it is unit * raw.
struct Expansion {
  const double* norms = nullptr;  // one per row
  double weight = 0, unit = 1;
  double largest = std::numeric_limits<double>::infinity();  // an upper bound of the norms, if known
};

struct TileShape {
  Index rows, columns;
};

class Samples {
 public:
  Samples(Index n, Index d) : n_(n), d_(d) {}
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;
  virtual ~Samples() = default;

  Index n() const { return n_; }
  Index d() const { return d_; }

  // |x_i|_1 for L1 distances, else |x_i|^2, of all rows in double and raw units, computed at the first call.
  const double* norms(Comparison comparison) const {
    Norms& norms = norms_of(comparison);
    std::call_once(norms.once, [&] { norms.values = compute_norms(comparison); });
    return norms.values.data();
  }

  // The factors of a normalised kernel, one per row; null means ones. They are set before the samples are used.
  const double* scale() const { return scale_.empty() ? nullptr : scale_.data(); }
  void set_scale(std::vector<double> scale) { scale_ = std::move(scale); }

  // A copy of the rows `ids`, of the same kind.
  std::unique_ptr<Samples> take(const Index* ids, Index count) const {
    auto taken = copy_rows(ids, count);
    if (scale())
      for (Index k = 0; k < count; ++k) taken->scale_.push_back(scale_[ids[k]]);
    return taken;
  }

  // Whether tiles between the two can be made: same kind, same precision.
  virtual bool comparable_with(const Samples& other) const = 0;

  // The type in which tiles with the rows of `a` are made.
  virtual RawType raw_type(const Samples& a) const = 0;

  // How raw values of this kind become the compared values that a kernel is a function of.
  virtual Expansion expansion(Comparison) const { return {}; }

  // A good tile size for q rows against `width` columns of these samples. Threads divide the columns among themselves,
  // and with split_rows also the chunks of rows.
  virtual TileShape tile_shape(Index q, Index width, bool split_rows) const = 0;

  // Prepares the samples to be columns of tiles, on threads. What is not prepared is at the first use, by one thread
  // while the others wait.
  virtual void pack(int) const {}

  // Approximate arithmetic of one kernel value between a row of `a` and a row of these.
  virtual double value_flops(const Samples& a) const = 0;

 protected:
  virtual std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const = 0;
  virtual std::vector<double> compute_norms(Comparison) const { return {}; }

  // For samples that know their norms when they are made.
  void keep_norms(Comparison comparison, std::vector<double> values) {
    Norms& norms = norms_of(comparison);
    std::call_once(norms.once, [&] { norms.values = std::move(values); });
  }

  static constexpr double transform_flops = 20;  // exp and the like

 private:
  struct Norms {
    std::once_flag once;
    std::vector<double> values;
  };

  Norms& norms_of(Comparison comparison) const { return norms_[comparison == Comparison::l1_distance]; }

  Index n_, d_;
  std::vector<double> scale_;
  mutable Norms norms_[2];
};

// One thread's maker of tiles: some rows of samples `a` against a range of rows of samples `b`.
template <class Raw>
class RowTiles {
 public:
  virtual ~RowTiles() = default;
  // Chooses the rows; `ids` need not outlive the call.
  virtual void load(const Index* ids, Index q) = 0;
  // tile[k * ld + j - begin] = raw value of the k-th chosen row and row j of b, begin <= j < end.
  // ld >= end - begin, a multiple of tile_alignment; the padding may be overwritten.
  virtual void fill(Index begin, Index end, Raw* tile, Index ld) = 0;
};

inline constexpr Index tile_alignment = 64;

constexpr Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }

// Samples that can make tiles of type Raw.
template <class Raw>
class TileSource {
 public:
  virtual ~TileSource() = default;
  // `a` must be comparable with these, and both must outlive the result.
  virtual std::unique_ptr<RowTiles<Raw>> row_tiles(const Samples& a, Comparison comparison) const = 0;
};

// The TileSource of the kind of samples `Kind`, whose tiles are made by Kind::Tiles<Raw>(a, b, comparison).
template <class Kind, class Raw>
class TilesOf : public TileSource<Raw> {
 public:
  std::unique_ptr<RowTiles<Raw>> row_tiles(const Samples& a, Comparison comparison) const final {
    using Tiles = typename Kind::template Tiles<Raw>;
    return std::make_unique<Tiles>(static_cast<const Kind&>(a), static_cast<const Kind&>(*this), comparison);
  }
};

// Samples whose raw values always have the floating-point type Raw.
template <class Kind, class Raw>
class FloatSamples : public Samples, public TilesOf<Kind, Raw> {
 public:
  using Samples::Samples;
  RawType raw_type(const Samples&) const final {
    return std::is_same_v<Raw, float> ? RawType::float32 : RawType::float64;
  }
};

// Fills a tile of q rows, columns begin <= j < end, if columns can only be computed in whole panels: fill(panel, out,
// step) writes all columns of a panel to out[k * step]. Panels that exceed the tile go to `edge` first.
template <class Raw, class Fill>
void fill_by_panels(Index panel_width, Index q, Index begin, Index end, Raw* tile, Index ld, AlignedBuffer<Raw>& edge,
                    Fill fill) {
  for (Index j = begin / panel_width * panel_width; j < end; j += panel_width) {
    if (j >= begin && j - begin + panel_width <= ld) {
      fill(j / panel_width, tile + (j - begin), ld);
      continue;
    }
    Raw* whole = edge.reserve(q * panel_width);
    fill(j / panel_width, whole, panel_width);
    const Index from = std::max(begin, j), to = std::min(end, j + panel_width);
    for (Index k = 0; k < q; ++k)
      std::copy_n(whole + k * panel_width + (from - j), to - from, tile + k * ld + (from - begin));
  }
}

// The width of tiles if `width` columns are divided `chunks` times: `largest`, or less if that would give fewer than
// about 16 tiles, but at least `least` (largest >= least).
inline Index shared_columns(Index width, Index chunks, Index least, Index largest) {
  return std::clamp(round_up(width * chunks / 16 + 1, tile_alignment), least, largest);
}

// The tile_shape of dense samples, with tiles of at most so many rows.
inline TileShape dense_tile_shape(Index q, Index width, bool split_rows, Index most_rows) {
  const Index rows = std::min(q, most_rows), chunks = split_rows ? (q + rows - 1) / rows : 1;
  return {rows, shared_columns(width, chunks, 256, 1024)};
}

}  // namespace multimargin::samples
