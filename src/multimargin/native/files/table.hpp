// The grammar of tables in text: rows of values between delimiters, or between blanks.
//
// Every column has numbers, or words (labels, for example). Values may be in quotes, which may hold the delimiter, and
// in which two quotes, or a backslash and a quote, stand for one. A value ends in its line. Lines without values are
// left out, and so is the rest of a line from the comment's sign on.
#pragma once

#include "files/chunk.hpp"
#include "files/number.hpp"

namespace multimargin::files {

enum class Column : std::uint8_t { number, word, skipped };

class Table {
 public:
  static constexpr bool sparse = false;

  // delimiter: 0 for blanks. comment: 0 for none; it must be the first sign of a line.
  Table(char delimiter, std::string quotes, char comment, std::vector<Column> columns)
      : delimiter_(delimiter), quotes_(std::move(quotes)), comment_(comment), columns_(std::move(columns)) {}

  std::size_t word_columns() const {
    return static_cast<std::size_t>(std::count(columns_.begin(), columns_.end(), Column::word));
  }

  class Parser {
   public:
    explicit Parser(const Table& grammar) : grammar_(grammar) {}

    Chunk operator()(const char* p, const char* end) {
      Chunk chunk;
      chunk.words.resize(grammar_.word_columns());
      values_.clear();
      each_line(p, end, chunk, [&](const char* begin, const char* stop) { line(begin, stop, chunk); });
      chunk.entries = static_cast<Index>(values_.size());
      chunk.values = packed_values(values_, chunk.range);
      return chunk;
    }

   private:
    void line(const char* begin, const char* end, Chunk& chunk) {
      while (end > begin && (end[-1] == '\r' || (is_blank(end[-1]) && end[-1] != grammar_.delimiter_))) --end;
      const char* p = skip_blanks(begin, end);
      if (p == end || (grammar_.comment_ && *p == grammar_.comment_)) return;
      std::size_t column = 0, word = 0;
      for (bool more = true; more; ++column) {
        p = skip_blanks(p, end);
        if (column == grammar_.columns_.size())
          return fault(chunk, begin, p, "more than " + std::to_string(column) + " values in a line");
        const Column kind = grammar_.columns_[column];
        if (!(kind == Column::number ? number(begin, p, end, chunk) : text(begin, p, end, chunk))) return;
        if (kind == Column::word) chunk.words[word++].add(field_, chunk.lines + 1);
        more = next(p, end);
      }
      if (column < grammar_.columns_.size())
        return fault(chunk, begin, p, std::to_string(grammar_.columns_.size()) + " values expected in a line, got " +
                                          std::to_string(column));
      ++chunk.rows;
    }

    // Moves behind the delimiter; false at the end of the line.
    bool next(const char*& p, const char* end) const {
      p = skip_blanks(p, end);
      if (p == end) return false;
      p += grammar_.delimiter_ != 0;
      return true;
    }

    MULTIMARGIN_INLINE bool number(const char* begin, const char*& p, const char* end, Chunk& chunk) {
      const char* const start = p;
      double value;
      const Number found = read_number(p, end, value);
      if (found == Number::good && ends_here(p, end)) {
        values_.push_back(value);
        chunk.range.add(value);
        return true;
      }
      return odd_number(begin, p = start, end, chunk);
    }

    // A number in quotes, or a fault.
    bool odd_number(const char* begin, const char*& p, const char* end, Chunk& chunk) {
      const char* const start = p;
      if (!text(begin, p, end, chunk)) return false;
      const char *at = field_.data(), *last = at + field_.size();
      at = skip_all_blanks(at, last);
      double value;
      const Number found = read_number(at, last, value);
      at = skip_all_blanks(at, last);
      if (found == Number::good && at == last) {
        values_.push_back(value);
        chunk.range.add(value);
        return true;
      }
      const bool infinite = found == Number::not_finite && at == last;
      const std::string got = quoted(field_.data(), field_.data() + field_.size());
      fault(chunk, begin, start, field_.empty()                 ? "a value is missing"
                                 : is_missing(field_, infinite) ? "a value is missing (" + got + ")"
                                 : infinite                     ? "a finite number expected, got " + got
                                                                : "a number expected, got " + got);
      return false;
    }

    // Whether a word says that there is no value.
    static bool is_missing(std::string_view word, bool not_finite) {
      const bool nan = not_finite && (word[0] | 0x20) == 'n';
      return nan || word == "?" || word == "NA" || word == "N/A" || word == "null";
    }

    // Reads a value as it stands, without its quotes, into field_.
    bool text(const char* begin, const char*& p, const char* end, Chunk& chunk) {
      field_.clear();
      if (p == end || grammar_.quotes_.find(*p) == std::string::npos) {
        const char* const first = p;
        while (p < end && !(grammar_.delimiter_ ? *p == grammar_.delimiter_ : is_blank(*p))) ++p;
        const char* last = p;
        while (last > first && is_blank(last[-1])) --last;
        field_.assign(first, last);
        return true;
      }
      const char* const start = p;
      const char quote = *p++;
      for (; p < end; ++p) {
        if (*p == '\\' && p + 1 < end && (p[1] == quote || p[1] == '\\')) ++p;
        else if (*p == quote && p + 1 < end && p[1] == quote) ++p;
        else if (*p == quote) break;
        field_ += *p;
      }
      if (p == end) return fault(chunk, begin, start, "a quote is not closed in its line"), false;
      ++p;
      if (!ends_here(p, end)) return fault(chunk, begin, p, "a delimiter expected after a quote"), false;
      return true;
    }

    bool ends_here(const char* p, const char* end) const {
      if (p < end && !grammar_.delimiter_) return is_blank(*p);
      p = skip_blanks(p, end);
      return p == end || *p == grammar_.delimiter_;
    }

    const char* skip_blanks(const char* p, const char* end) const {
      while (p < end && is_blank(*p) && *p != grammar_.delimiter_) ++p;
      return p;
    }

    static const char* skip_all_blanks(const char* p, const char* end) {
      while (p < end && is_blank(*p)) ++p;
      return p;
    }

    const Table& grammar_;
    std::vector<double> values_;
    std::string field_;
  };

 private:
  char delimiter_;
  std::string quotes_;
  char comment_;
  std::vector<Column> columns_;
};

}  // namespace multimargin::files
