// Samples of zeros and one other value, `scale`: dense, or sparse with all entries equal. Columns are bytes that lie
// feature by feature in panels. A row adds up the lines of its features, which counts the features it has in common
// with each column. Every kernel is a function of that count and of the two rows' own counts a and b: <a,b> = scale^2
// common,  |a-b|^2 = scale^2 (a + b - 2 common),  |a-b|_1 = scale (a + b - 2 common).
#pragma once

#include "base/aligned_buffer.hpp"
#include "samples/samples.hpp"

namespace multimargin::samples {

// Columns of one panel.
inline constexpr Index binary_panel = 2 * tile_alignment;

// Bytes added side by side, in one register if the machine has one of that width.
struct ByteSums {
  static constexpr Index width = 32;
#if defined(__GNUC__)
  typedef std::uint8_t Lanes __attribute__((vector_size(width)));
  Lanes lanes = {};

  MULTIMARGIN_INLINE void add(const std::uint8_t* line) {
    Lanes other;
    std::memcpy(&other, line, width);
    lanes += other;
  }
#else
  std::uint8_t lanes[width] = {};

  void add(const std::uint8_t* line) {
    for (Index l = 0; l < width; ++l) lanes[l] = static_cast<std::uint8_t>(lanes[l] + line[l]);
  }
#endif

  template <class Count>
  MULTIMARGIN_INLINE void add_to(Count* counts) const {
    std::uint8_t bytes[width];
    std::memcpy(bytes, &lanes, width);
#pragma omp simd
    for (Index l = 0; l < width; ++l) counts[l] = static_cast<Count>(counts[l] + bytes[l]);
  }
};

// counts[l] += sum over the lines of panel[lines[p] + l], l < binary_panel, for at most 255 lines: then the sums fit a
// byte.
template <class Count>
MULTIMARGIN_CLONES void add_lines(const std::uint32_t* lines, Index count, const std::uint8_t* panel, Count* counts) {
  constexpr Index width = ByteSums::width;
  static_assert(binary_panel == 4 * width);
  ByteSums a, b, c, d;
  for (Index p = 0; p < count; ++p) {
    const std::uint8_t* line = panel + lines[p];
    a.add(line), b.add(line + width), c.add(line + 2 * width), d.add(line + 3 * width);
  }
  a.add_to(counts), b.add_to(counts + width), c.add_to(counts + 2 * width), d.add_to(counts + 3 * width);
}

// The features of each row that are not zero: row i has features[pointers[i]..pointers[i + 1]).
struct ActiveFeatures {
  std::vector<Index> pointers{0};
  std::vector<std::uint32_t> features;

  void end_row() { pointers.push_back(static_cast<Index>(features.size())); }
  Index rows() const { return static_cast<Index>(pointers.size()) - 1; }
  Index count(Index i) const { return pointers[i + 1] - pointers[i]; }
};

class BinarySamples final : public Samples,
                            public TilesOf<BinarySamples, std::uint8_t>,
                            public TilesOf<BinarySamples, std::int32_t> {
 public:
  BinarySamples(ActiveFeatures rows, Index d, double scale)
      : Samples(rows.rows(), d), rows_(std::move(rows)), scale_(scale), panel_bytes_(d * binary_panel) {
    if (panel_bytes_ > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("binary samples: too many features");
    const Index size = round_up(n(), binary_panel) * d;
    std::fill_n(panels_.reserve(size), size, std::uint8_t{0});
    for (Index i = 0; i < n(); ++i) {
      most_ = std::max(most_, rows_.count(i));
      for (Index p = rows_.pointers[i]; p < rows_.pointers[i + 1]; ++p)
        panels_.data()[i / binary_panel * panel_bytes_ + rows_.features[p] * binary_panel + i % binary_panel] = 1;
    }
  }

  std::unique_ptr<Samples> copy_rows(const Index* ids, Index count) const override {
    ActiveFeatures rows;
    for (Index k = 0; k < count; ++k) {
      const auto first = rows_.features.begin();
      rows.features.insert(rows.features.end(), first + rows_.pointers[ids[k]], first + rows_.pointers[ids[k] + 1]);
      rows.end_row();
    }
    return std::make_unique<BinarySamples>(std::move(rows), d(), scale_);
  }

  bool comparable_with(const Samples& other) const override {
    const auto* same = dynamic_cast<const BinarySamples*>(&other);
    return same && same->scale_ == scale_;
  }

  RawType raw_type(const Samples& a) const override {
    return static_cast<const BinarySamples&>(a).most_ <= most_lines ? RawType::uint8 : RawType::int32;
  }

  Expansion expansion(Comparison comparison) const override {
    const double* norms = comparison == Comparison::product ? nullptr : this->norms(comparison);
    return {norms, -2.0, comparison == Comparison::l1_distance ? scale_ : scale_ * scale_, static_cast<double>(most_)};
  }

  TileShape tile_shape(Index q, Index width, bool split_rows) const override {
    return dense_tile_shape(q, width, split_rows, 64);
  }

  double value_flops(const Samples& a) const override {
    const auto& rows = static_cast<const BinarySamples&>(a).rows_;
    return static_cast<double>(rows.features.size()) / (16.0 * std::max<Index>(rows.rows(), 1)) + transform_flops;
  }

  template <class Count>
  class Tiles final : public RowTiles<Count> {
   public:
    Tiles(const BinarySamples& a, const BinarySamples& b, Comparison) : a_(a), b_(b) {}

    void load(const Index* ids, Index q) override {
      lines_.clear(), ends_.clear();
      for (Index k = 0; k < q; ++k) {
        for (Index p = a_.rows_.pointers[ids[k]]; p < a_.rows_.pointers[ids[k] + 1]; ++p)
          lines_.push_back(a_.rows_.features[p] * static_cast<std::uint32_t>(binary_panel));
        ends_.push_back(static_cast<Index>(lines_.size()));
      }
    }

    void fill(Index begin, Index end, Count* tile, Index ld) override {
      const Index q = static_cast<Index>(ends_.size());
      fill_by_panels(binary_panel, q, begin, end, tile, ld, edge_, [&](Index panel, Count* out, Index step) {
        for (Index k = 0; k < q; ++k) count_common(k, b_.panels_.data() + panel * b_.panel_bytes_, out + k * step);
      });
    }

   private:
    void count_common(Index k, const std::uint8_t* panel, Count* counts) const {
      std::fill_n(counts, binary_panel, Count(0));
      for (Index p = k ? ends_[k - 1] : 0; p < ends_[k]; p += most_lines)
        add_lines(lines_.data() + p, std::min(most_lines, ends_[k] - p), panel, counts);
    }

    const BinarySamples &a_, &b_;
    std::vector<std::uint32_t> lines_;  // of each row's features, in every panel
    std::vector<Index> ends_;
    AlignedBuffer<Count> edge_;
  };

 protected:
  std::vector<double> compute_norms(Comparison) const override {
    std::vector<double> norms(n());
    for (Index i = 0; i < n(); ++i) norms[i] = static_cast<double>(rows_.count(i));
    return norms;
  }

 private:
  static constexpr Index most_lines = 255;  // whose sum fits a byte

  ActiveFeatures rows_;
  double scale_;
  Index panel_bytes_, most_ = 0;  // the largest number of features of a row
  AlignedBuffer<std::uint8_t> panels_;
};

}  // namespace multimargin::samples
