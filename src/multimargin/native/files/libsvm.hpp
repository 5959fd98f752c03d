// The grammar of LIBSVM text:
//
//     line    = [label] ["qid:" number] {index ":" value} ["#" comment]
//
// Words are separated by blanks. A line without words is left out. Indices of a line may come in any order, none twice;
// the rows that come out have them ascending, and no zeros.
#pragma once

#include "files/chunk.hpp"
#include "files/number.hpp"

namespace multimargin::files {

class Libsvm {
 public:
  static constexpr bool sparse = true;

  // Indices below `least_index` or above `most_index` are faults.
  Libsvm(bool labelled, Index least_index, Index most_index)
      : labelled_(labelled), least_index_(least_index), most_index_(most_index) {}

  std::size_t word_columns() const { return labelled_; }

  // Reads whole lines. Every thread has its own parser, whose buffers last from one chunk to the next.
  class Parser {
   public:
    explicit Parser(const Libsvm& grammar) : grammar_(grammar) {}

    Chunk operator()(const char* p, const char* end) {
      Chunk chunk;
      chunk.words.resize(grammar_.word_columns());
      indices_.clear();
      values_.clear();
      each_line(p, end, chunk, [&](const char* begin, const char* stop) { line(begin, stop, chunk); });
      chunk.rows = static_cast<Index>(chunk.ends.size());
      chunk.entries = static_cast<Index>(values_.size());
      chunk.values = packed_values(values_, chunk.range);
      chunk.indices = packed_indices(indices_, chunk.most_index);
      return chunk;
    }

   private:
    void line(const char* const begin, const char* end, Chunk& chunk) {
      const char* p = skip_blanks(begin, end);
      if (p == end || *p == '#') return;
      if (grammar_.labelled_) {
        const char* const word = p;
        while (p < end && !is_blank(*p) && *p != '#') ++p;
        if (const char* wrong = label_fault(word, p)) return fault(chunk, begin, word, wrong + quoted(word, p));
        chunk.words[0].add({word, static_cast<std::size_t>(p - word)}, chunk.lines + 1);
      }
      const std::size_t first = indices_.size();
      ascending_ = true, zeros_ = false, previous_ = -1;
      for (p = skip_blanks(p, end); p < end && *p != '#'; p = skip_blanks(p, end)) {
        if (*p == 'q' && std::string_view(p, static_cast<std::size_t>(end - p)).starts_with("qid:")) {
          while (p < end && !is_blank(*p) && *p != '#') ++p;
        } else if (!entry(begin, p, end, chunk)) {
          return;
        }
      }
      if (!ascending_ && !sort(first, begin, end, chunk)) return;
      if (zeros_) drop_zeros(first);
      chunk.ends.push_back(static_cast<Index>(indices_.size()));
    }

    // Reads "index:value".
    MULTIMARGIN_INLINE bool entry(const char* begin, const char*& p, const char* end, Chunk& chunk) {
      const char* const word = p;
      Index index = 0;
      for (; p < end && is_digit(*p); ++p) {
        if (index > std::numeric_limits<Index>::max() / 16) break;  // the next digit might not fit
        index = 10 * index + (*p - '0');
      }
      if (p == word || p >= end || *p != ':') return wrong_index(begin, word, end, chunk);
      if (index < grammar_.least_index_ || index > grammar_.most_index_) return out_of_range(begin, word, p, chunk);
      double value;
      const char* const text = ++p;
      const Number number = read_number(p, end, value);
      const bool ended = p == end || is_blank(*p) || *p == '#';
      if (number != Number::good || !ended)
        return wrong_value(begin, text, end, ended && number == Number::not_finite, chunk);
      ascending_ = ascending_ && index > previous_;
      previous_ = index;
      zeros_ = zeros_ || value == 0.0;
      indices_.push_back(index);
      values_.push_back(value);
      chunk.range.add(value);
      const Place place{chunk.lines + 1, word - begin + 1};
      if (index > chunk.most_index) chunk.most_index = index, chunk.most_place = place;
      if (index < chunk.least_index) chunk.least_index = index, chunk.least_place = place;
      return true;
    }

    // Sorts the entries of a row from `first` on; false if an index is there twice.
    bool sort(std::size_t first, const char* begin, const char* end, Chunk& chunk) {
      const std::size_t count = indices_.size() - first;
      pairs_.resize(count);
      for (std::size_t k = 0; k < count; ++k) pairs_[k] = {indices_[first + k], values_[first + k]};
      std::sort(pairs_.begin(), pairs_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t k = 0; k < count; ++k) {
        if (k && pairs_[k].first == pairs_[k - 1].first) {
          fault(chunk, begin, second(begin, end, pairs_[k].first),
                "index " + std::to_string(pairs_[k].first) + " is there twice in one line");
          return false;
        }
        indices_[first + k] = pairs_[k].first, values_[first + k] = pairs_[k].second;
      }
      return true;
    }

    // Where an index stands for the second time in a line.
    static const char* second(const char* begin, const char* end, Index index) {
      const std::string word = std::to_string(index) + ":";
      const char* found = nullptr;
      for (const char* p = skip_blanks(begin, end); p < end; p = skip_blanks(p, end)) {
        const char* number = p;
        while (number + 1 < end && *number == '0' && is_digit(number[1])) ++number;
        if (std::string_view(number, static_cast<std::size_t>(end - number)).starts_with(word)) {
          if (found) return p;
          found = p;
        }
        while (p < end && !is_blank(*p)) ++p;
      }
      return found ? found : begin;
    }

    void drop_zeros(std::size_t first) {
      std::size_t to = first;
      for (std::size_t k = first; k < indices_.size(); ++k) {
        if (values_[k] == 0.0) continue;
        indices_[to] = indices_[k], values_[to] = values_[k];
        ++to;
      }
      indices_.resize(to);
      values_.resize(to);
    }

    // -- faults ------------------------------------------------------------------------------------------------------
    static const char* label_fault(const char* word, const char* end) {
      if (word == end) return "a label expected, got ";
      const std::string_view text(word, static_cast<std::size_t>(end - word));
      if (text.find(':') != text.npos) return "a label expected at the beginning of the line, got ";
      if (text.find(',') != text.npos) return "one label per line expected, got several: ";
      return nullptr;
    }

    bool wrong_index(const char* begin, const char* word, const char* end, Chunk& chunk) {
      const char* last = word;
      while (last < end && !is_blank(*last)) ++last;
      const char* colon = std::find(word, last, ':');
      const bool digits = word < colon && std::all_of(word, colon, is_digit);
      fault(chunk, begin, word, digits && colon < last ? "the index " + quoted(word, colon) + " is too large"
                                                       : "index:value expected, got " + quoted(word, last));
      return false;
    }

    bool out_of_range(const char* begin, const char* word, const char* colon, Chunk& chunk) {
      const std::string text(word, colon);
      const bool small = std::strtoll(text.c_str(), nullptr, 10) < grammar_.least_index_;
      fault(chunk, begin, word, small ? "indices count from 1 (zero_based=False), got " + text
                                      : "the index " + text + " is larger than n_features allows");
      return false;
    }

    bool wrong_value(const char* begin, const char* text, const char* end, bool not_finite, Chunk& chunk) {
      const char* last = text;
      while (last < end && !is_blank(*last) && *last != '#') ++last;
      fault(chunk, begin, text, not_finite ? "a finite number expected, got " + quoted(text, last)
                                           : "a number expected after the colon, got " + quoted(text, last));
      return false;
    }

    static const char* skip_blanks(const char* p, const char* end) {
      while (p < end && is_blank(*p)) ++p;
      return p;
    }

    const Libsvm& grammar_;
    std::vector<Index> indices_;
    std::vector<double> values_;
    std::vector<std::pair<Index, double>> pairs_;
    bool ascending_ = true, zeros_ = false;
    Index previous_ = -1;
  };

 private:
  bool labelled_;
  Index least_index_, most_index_;
};

}  // namespace multimargin::files
