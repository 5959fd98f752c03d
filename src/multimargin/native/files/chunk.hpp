// What is read from some lines of text: values in the smallest type that holds them, places, and words.
#pragma once

#include <deque>
#include <unordered_map>
#include <variant>

#include "base/platform.hpp"

namespace multimargin::files {

// Where something stands: lines and columns count from 1, in bytes; line 0 is nowhere.
struct Place {
  Index line = 0, column = 0;
};

// Why a line could not be read.
struct Fault {
  Place place;
  std::string what;
};

// The words at a pointer, for a message: at most 30 bytes of them.
inline std::string quoted(const char* first, const char* last) {
  constexpr std::ptrdiff_t most = 30;
  std::string text(first, std::min(last, first + most));
  return "'" + text + (last - first > most ? "...'" : "'");
}

// Numbers of one of several types.
template <class... Types>
class Packed {
 public:
  // `from` as numbers of type T, which must hold them all.
  template <class T, class S>
  void assign(const std::vector<S>& from) {
    std::vector<T> numbers(from.size());
    std::transform(from.begin(), from.end(), numbers.begin(), [](S x) { return static_cast<T>(x); });
    numbers_ = std::move(numbers);
  }

  // Calls work(pointer to the first number).
  template <class Work>
  void visit(Work work) const {
    std::visit([&](const auto& numbers) { work(numbers.data()); }, numbers_);
  }

  Index nbytes() const {
    return std::visit([](const auto& x) { return static_cast<Index>(x.size() * sizeof(x[0])); }, numbers_);
  }

  void clear() { numbers_ = {}; }

 private:
  std::variant<std::vector<Types>...> numbers_;
};

// The range of numbers, and whether all of them are whole.
struct Range {
  double least = 0.0, most = 0.0;  // of the numbers and 0
  bool whole = true;

  void add(double x) {
    least = std::min(least, x);
    most = std::max(most, x);
    whole = whole && x == std::trunc(x);
  }
  void add(const Range& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    whole = whole && other.whole;
  }
  template <class T>
  bool fits() const {
    return whole && least >= std::numeric_limits<T>::lowest() && most <= std::numeric_limits<T>::max();
  }
};

using Values = Packed<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, double>;
using Indices = Packed<std::uint16_t, std::int32_t, std::int64_t>;

inline Values packed_values(const std::vector<double>& numbers, const Range& range) {
  Values values;
  if (range.fits<std::uint8_t>()) values.assign<std::uint8_t>(numbers);
  else if (range.fits<std::int8_t>()) values.assign<std::int8_t>(numbers);
  else if (range.fits<std::int16_t>()) values.assign<std::int16_t>(numbers);
  else if (range.fits<std::int32_t>()) values.assign<std::int32_t>(numbers);
  else values.assign<double>(numbers);
  return values;
}

inline Indices packed_indices(const std::vector<Index>& numbers, Index most) {
  Indices indices;
  if (most <= std::numeric_limits<std::uint16_t>::max()) indices.assign<std::uint16_t>(numbers);
  else if (most <= std::numeric_limits<std::int32_t>::max()) indices.assign<std::int32_t>(numbers);
  else indices.assign<std::int64_t>(numbers);
  return indices;
}

// A column of words, labels for example: the different words, and for each row which one it is.
class Words {
 public:
  void add(std::string_view word, Index line) {
    if (codes_.empty() || word != names_[codes_.back()]) codes_.push_back(code(word, line));
    else codes_.push_back(codes_.back());
  }

  // The words of `other` come after those that are here; its lines come after `lines` others.
  void append(const Words& other, Index lines) {
    std::vector<std::uint32_t> mine(other.names_.size());
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = code(other.names_[k], other.first_[k] + lines);
    for (const std::uint32_t theirs : other.codes_) codes_.push_back(mine[theirs]);
  }

  const std::deque<std::string>& names() const { return names_; }
  const std::vector<Index>& first_lines() const { return first_; }
  const std::vector<std::uint32_t>& codes() const { return codes_; }

 private:
  std::uint32_t code(std::string_view word, Index line) {
    const auto found = known_.find(word);
    if (found != known_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(word);
    first_.push_back(line);
    known_.emplace(names_.back(), number);
    return number;
  }

  std::deque<std::string> names_;  // a deque, because the map looks at the words in their places
  std::vector<Index> first_;       // the line in which each word comes first
  std::unordered_map<std::string_view, std::uint32_t> known_;
  std::vector<std::uint32_t> codes_;
};

// What some lines have given.
struct Chunk {
  Values values;
  Indices indices;              // of sparse rows
  std::vector<Index> ends;      // of sparse rows: how many entries there are up to the end of each
  std::vector<Words> words;     // one for each column of words
  Range range;
  Index lines = 0, rows = 0, entries = 0;
  Index least_index = std::numeric_limits<Index>::max(), most_index = -1;
  Place least_place, most_place;
  std::optional<Fault> fault;

  Index nbytes() const {
    return values.nbytes() + indices.nbytes() + static_cast<Index>(ends.size() * sizeof(Index));
  }
  void clear() {
    values.clear();
    indices.clear();
    ends = {};
  }
};

// Calls line(begin, end) for the lines of a text, up to the first fault.
template <class Line>
void each_line(const char* p, const char* end, Chunk& chunk, Line line) {
  for (; p < end && !chunk.fault; ++chunk.lines) {
    const char* stop = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
    line(p, stop ? stop : end);
    p = stop ? stop + 1 : end;
  }
}

// Notes why the line that begins at `begin` cannot be read.
inline void fault(Chunk& chunk, const char* begin, const char* at, std::string what) {
  chunk.fault = Fault{{chunk.lines + 1, at - begin + 1}, std::move(what)};
}

}  // namespace multimargin::files
