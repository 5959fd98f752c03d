// Text read by several threads, block by block: a block is cut at line ends into chunks, which are read on their own.
#pragma once

#include "files/chunk.hpp"

namespace multimargin::files {

// Puts the chunks of a text together. The grammar says what a line may have.
template <class Grammar>
class Reader {
 public:
  explicit Reader(Grammar grammar) : grammar_(std::move(grammar)), words_(grammar_.word_columns()) {}

  // Reads whole lines; the last one of a text needs no line end. Returns why it could not, if so.
  std::optional<Fault> feed(const char* data, Index size, int n_threads) {
    const std::vector<Index> cuts = cut(data, size, n_threads);
    const Index count = static_cast<Index>(cuts.size()) - 1;
    std::vector<Chunk> found(static_cast<std::size_t>(count));
    parallel_tasks(count, n_threads, [&] {
      return [&, parser = typename Grammar::Parser(grammar_)](Index k) mutable {
        found[k] = parser(data + cuts[k], data + cuts[k + 1]);
      };
    });
    for (Chunk& chunk : found) {
      if (chunk.fault) {
        chunk.fault->place.line += lines_;
        return chunk.fault;
      }
      take_over(std::move(chunk));
    }
    return std::nullopt;
  }

  Index lines() const { return lines_; }
  Index rows() const { return rows_; }
  Index entries() const { return entries_; }
  Index nbytes() const { return nbytes_; }
  const Range& range() const { return range_; }
  Index least_index() const { return least_index_; }
  Index most_index() const { return most_index_; }
  const Place& least_place() const { return least_place_; }
  const Place& most_place() const { return most_place_; }
  std::size_t word_columns() const { return words_.size(); }
  const Words& words(std::size_t column) const { return words_.at(column); }

  // Writes all values, one after the other. Chunks are freed on the way.
  template <class T>
  void values(T* out, int n_threads) {
    check_type<T>();
    each_chunk(n_threads, [&](Chunk& chunk, Index, Index first_entry) {
      chunk.values.visit([&](const auto* from) { convert(from, chunk.entries, out + first_entry); });
    });
  }

  // Writes sparse rows as the arrays of a CSR matrix; indices count from `base`.
  template <class T, class I>
  void csr(T* data, I* indices, I* indptr, Index base, int n_threads) {
    check_type<T>();
    indptr[0] = 0;
    each_chunk(n_threads, [&](Chunk& chunk, Index first_row, Index first_entry) {
      chunk.values.visit([&](const auto* from) { convert(from, chunk.entries, data + first_entry); });
      chunk.indices.visit([&](const auto* from) {
        for (Index k = 0; k < chunk.entries; ++k)
          indices[first_entry + k] = static_cast<I>(static_cast<Index>(from[k]) - base);
      });
      for (Index i = 0; i < chunk.rows; ++i) indptr[first_row + i + 1] = static_cast<I>(first_entry + chunk.ends[i]);
    });
  }

  // Writes sparse rows into a matrix (rows, width) of zeros.
  template <class T>
  void dense(T* out, Index width, Index base, int n_threads) {
    check_type<T>();
    each_chunk(n_threads, [&](Chunk& chunk, Index first_row, Index) {
      chunk.values.visit([&](const auto* values) {
        chunk.indices.visit([&](const auto* indices) {
          Index k = 0;
          for (Index i = 0; i < chunk.rows; ++i)
            for (T* row = out + (first_row + i) * width - base; k < chunk.ends[i]; ++k)
              row[indices[k]] = static_cast<T>(values[k]);
        });
      });
    });
  }

 private:
  static constexpr Index kLeast = 1 << 16, kMost = 1 << 20;  // bytes of a chunk; a thread gets several of a block

  // Numbers that an integer type does not hold have no value in it.
  template <class T>
  void check_type() const {
    if constexpr (std::is_integral_v<T>)
      if (!range_.fits<T>()) throw std::invalid_argument("the text has numbers that this type cannot hold");
  }

  // Places in the text, each at the beginning of a line, and its end.
  static std::vector<Index> cut(const char* data, Index size, int n_threads) {
    const Index wanted = std::clamp(size / (4 * n_threads), kLeast, kMost);
    std::vector<Index> cuts{0};
    while (cuts.back() < size) {
      const Index from = cuts.back() + wanted;
      const char* line_end =
          from < size ? static_cast<const char*>(std::memchr(data + from, '\n', static_cast<std::size_t>(size - from)))
                      : nullptr;
      cuts.push_back(line_end ? line_end - data + 1 : size);
    }
    return cuts;
  }

  void take_over(Chunk&& chunk) {
    if (chunk.most_index > most_index_) {
      most_index_ = chunk.most_index;
      most_place_ = {chunk.most_place.line + lines_, chunk.most_place.column};
    }
    if (chunk.least_index < least_index_) {
      least_index_ = chunk.least_index;
      least_place_ = {chunk.least_place.line + lines_, chunk.least_place.column};
    }
    for (std::size_t k = 0; k < words_.size(); ++k) words_[k].append(chunk.words[k], lines_);
    chunk.words.clear();
    range_.add(chunk.range);
    lines_ += chunk.lines;
    rows_ += chunk.rows;
    entries_ += chunk.entries;
    nbytes_ += chunk.nbytes();
    chunks_.push_back(std::move(chunk));
  }

  // Calls work(chunk, first row, first entry) for every chunk, and then frees the chunk's memory.
  template <class Work>
  void each_chunk(int n_threads, Work work) {
    std::vector<std::pair<Index, Index>> firsts;
    Index row = 0, entry = 0;
    for (const Chunk& chunk : chunks_) {
      firsts.emplace_back(row, entry);
      row += chunk.rows, entry += chunk.entries;
    }
    parallel_tasks(static_cast<Index>(chunks_.size()), n_threads, [&] {
      return [&](Index k) {
        work(chunks_[k], firsts[k].first, firsts[k].second);
        chunks_[k].clear();
      };
    });
    chunks_.clear();
  }

  template <class S, class T>
  static void convert(const S* from, Index count, T* to) {
    for (Index k = 0; k < count; ++k) to[k] = static_cast<T>(from[k]);
  }

  Grammar grammar_;
  std::vector<Chunk> chunks_;
  std::vector<Words> words_;
  Range range_;
  Index lines_ = 0, rows_ = 0, entries_ = 0, nbytes_ = 0;
  Index least_index_ = std::numeric_limits<Index>::max(), most_index_ = -1;
  Place least_place_, most_place_;
};

}  // namespace multimargin::files
