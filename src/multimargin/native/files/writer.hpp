// Rows of numbers as text. Each number has the fewest digits that give the same number when they are read.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/platform.hpp"

namespace multimargin::files {

// Appends a number to a text.
template <class T>
void write_number(std::string& text, T number) {
  char digits[40];
  if constexpr (std::is_integral_v<T>) {
    text.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(number)).ptr);
  } else {
#if defined(__cpp_lib_to_chars)
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
#else  // the standard library has no such function
    constexpr int enough = std::numeric_limits<T>::max_digits10;
    int length = 0;
    for (int digit = enough - 2; digit <= enough; ++digit) {
      length = std::snprintf(digits, sizeof digits, "%.*g", digit, static_cast<double>(number));
      if (static_cast<T>(std::strtod(digits, nullptr)) == number) break;
    }
    text.append(digits, static_cast<std::size_t>(length));
#endif
  }
}

// What stands around the numbers of a row. `before` and `after` have one text for all rows, or one for each code.
struct Style {
  std::vector<std::string> before, after;
  std::string separator, pair;  // between the entries of a row; between an index and its value
  bool leading = false;         // whether there is a separator before the first entry of a row

  const std::string& of(const std::vector<std::string>& texts, const std::int64_t* codes, Index row) const {
    return texts[texts.size() == 1 || !codes ? 0 : static_cast<std::size_t>(codes[row])];
  }
};

// Writes every row by entries(row, text), which calls `separate` before each entry.
template <class Entries>
std::string write_rows(Index n, const std::int64_t* codes, const Style& style, Entries entries) {
  std::string text;
  for (Index i = 0; i < n; ++i) {
    text += style.of(style.before, codes, i);
    bool separated = style.leading;
    entries(i, text, [&] {
      if (separated) text += style.separator;
      separated = true;
    });
    text += style.of(style.after, codes, i);
  }
  return text;
}

template <class T>
std::string write_dense(const T* x, Index n, Index d, const std::int64_t* codes, const Style& style) {
  return write_rows(n, codes, style, [&](Index i, std::string& text, auto separate) {
    for (Index f = 0; f < d; ++f) {
      separate();
      write_number(text, x[i * d + f]);
    }
  });
}

// Indices count from `base`.
template <class T, class I>
std::string write_sparse(const T* data, const I* indices, const I* indptr, Index n, Index base,
                         const std::int64_t* codes, const Style& style) {
  return write_rows(n, codes, style, [&](Index i, std::string& text, auto separate) {
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
      separate();
      write_number(text, static_cast<Index>(indices[k]) + base);
      text += style.pair;
      write_number(text, data[k]);
    }
  });
}

}  // namespace multimargin::files
