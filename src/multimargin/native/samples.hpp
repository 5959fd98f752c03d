// Samples: n immutable rows of d features, and the tiles of pair values (inner products or
// distances) between the rows of two of them. The concrete kinds are in dense_product.hpp,
// dense_direct.hpp and sparse_samples.hpp; kernel_block.hpp turns tiles into kernel values.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "kernel_function.hpp"
#include "platform.hpp"

namespace multimargin {

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

  // |x_i|^2 in double, computed at the first call.
  const std::vector<double>& squared_norms() const {
    std::call_once(norms_once_, [this] { norms_ = compute_squared_norms(); });
    return norms_;
  }

  // A copy of the rows `ids`, of the same kind.
  virtual std::unique_ptr<Samples> take(const Index* ids, Index count) const = 0;

  // Whether tiles between the two can be made: same kind, same precision.
  virtual bool pairs_with(const Samples& other) const = 0;

  // Where pair values of this kind are only the mixed term of a distance, the per-row terms that
  // complete it: distance = norm_a + norm_b + weight(pair) * raw. Null where raw is all there is.
  virtual const double* expansion_norms(Pair) const { return nullptr; }

  // A good tile size for q rows against `width` columns of these samples, where threads share out
  // the chunks of rows too (split_rows) or only the columns.
  virtual TileShape tile_shape(Index q, Index width, bool split_rows) const = 0;

  // Roughly the arithmetic of one kernel value between a row of `a` and a row of these.
  virtual double pair_flops(const Samples& a) const = 0;

 protected:
  virtual std::vector<double> compute_squared_norms() const = 0;

  static constexpr double transform_flops = 20;  // exp and the like

 private:
  Index n_, d_;
  mutable std::once_flag norms_once_;
  mutable std::vector<double> norms_;
};

// |a-b|^2 = |a|^2 + |b|^2 - 2 <a,b>;  |a-b|_1 = |a|_1 + |b|_1 + sum over common features of
// (|a-b| - |a| - |b|).
constexpr double expansion_weight(Pair pair) { return pair == Pair::squared_distance ? -2.0 : 1.0; }

// One thread's maker of tiles: some rows of samples `a` against a range of rows of samples `b`.
template <class Raw>
class PairTiles {
 public:
  virtual ~PairTiles() = default;
  // Chooses the rows; `ids` need not outlive the call.
  virtual void load(const Index* ids, Index q) = 0;
  // tile[k * ld + j - begin] = pair value of the k-th chosen row and row j of b, begin <= j < end.
  // ld >= end - begin, a multiple of tile_alignment; the padding may be overwritten.
  virtual void fill(Index begin, Index end, Raw* tile, Index ld) = 0;
};

inline constexpr Index tile_alignment = 64;

constexpr Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }

// Samples whose pair values are computed in precision Raw.
template <class Raw>
class RawSamples : public Samples {
 public:
  using Samples::Samples;
  // `a` must pair with these, and both must outlive the result.
  virtual std::unique_ptr<PairTiles<Raw>> pair_tiles(const Samples& a, Pair pair) const = 0;
};

// The width of tiles when `width` columns are shared out `chunks` times: `largest`, or less where
// that would leave fewer than some 16 tiles, but at least `least` (largest >= least).
inline Index shared_columns(Index width, Index chunks, Index least, Index largest) {
  return std::clamp(round_up(width * chunks / 16 + 1, tile_alignment), least, largest);
}

}  // namespace multimargin
