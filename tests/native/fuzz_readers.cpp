// Feeds bytes to the native readers of text: a driver for libFuzzer (tests/native/fuzz_readers.py builds and runs it).
//
// The first byte of an input chooses the reader and its options; the rest is the text. Beside what the sanitizers
// notice, an input fails if
//
//  - a number is not the one that strtod reads, or changes if it is written and read again;
//  - rows are not sorted, or have zeros, or a matrix differs between its dense and its sparse form;
//  - a text that is fed in two blocks gives other rows, or another fault, than in one.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "files/libsvm.hpp"
#include "files/reader.hpp"
#include "files/table.hpp"
#include "files/writer.hpp"

using namespace multimargin;
using namespace multimargin::files;

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void read_numbers(const char* p, const char* end) {
  double value = 0.0;
  const char* const start = p;
  const Number found = read_number(p, end, value);
  check(start <= p && p <= end, "a number ends in its text");
  if (found == Number::malformed) return check(p == start, "nothing was read of what is no number");
  if (found == Number::not_finite) return;
  const std::string text(start, p);
  check(same_bits(value, std::strtod(text.c_str(), nullptr)), "a number is what strtod reads");
  std::string written;
  write_number(written, value);
  const char* again = written.data();
  double back = 0.0;
  check(read_number(again, written.data() + written.size(), back) == Number::good, "what was written is read");
  check(again == written.data() + written.size() && same_bits(value, back), "what was written is the same number");
}

// What was read, in a form that can be compared.
struct Rows {
  std::optional<Fault> fault;
  Index rows = 0, lines = 0;
  std::vector<double> values;
  std::vector<Index> indices, indptr;
  std::vector<std::vector<std::string>> words;

  bool operator==(const Rows& other) const {
    const bool whole = !fault && !other.fault;
    if (!whole) {
      return fault && other.fault && fault->what == other.fault->what &&
             fault->place.line == other.fault->place.line && fault->place.column == other.fault->place.column;
    }
    return rows == other.rows && lines == other.lines && values == other.values && indices == other.indices &&
           indptr == other.indptr && words == other.words;
  }
};

// Feeds the text in blocks that end at these places.
template <class Grammar>
Rows read(Reader<Grammar> reader, const char* data, const std::vector<Index>& ends) {
  Rows found;
  Index from = 0;
  for (const Index end : ends) {
    found.fault = reader.feed(data + from, end - from, 1);
    if (found.fault) return found;
    from = end;
  }
  found.rows = reader.rows();
  found.lines = reader.lines();
  for (std::size_t column = 0; column < reader.word_columns(); ++column) {
    const Words& words = reader.words(column);
    check(static_cast<Index>(words.codes().size()) == found.rows, "each row has its word");
    found.words.emplace_back();
    for (const std::uint32_t code : words.codes()) found.words.back().push_back(words.names().at(code));
  }
  found.values.resize(static_cast<std::size_t>(reader.entries()));
  if constexpr (Grammar::sparse) {
    found.indices.resize(found.values.size());
    found.indptr.resize(static_cast<std::size_t>(found.rows + 1));
    Reader<Grammar> copy = reader;
    reader.csr(found.values.data(), found.indices.data(), found.indptr.data(), Index{0}, 1);
    const Index width = copy.most_index() + 1;
    if (width * found.rows > 4096) return found;
    std::vector<double> dense(static_cast<std::size_t>(width * found.rows)), expected = dense;
    copy.dense(dense.data(), width, Index{0}, 1);
    for (Index i = 0; i < found.rows; ++i)
      for (Index k = found.indptr[i]; k < found.indptr[i + 1]; ++k)
        expected[i * width + found.indices[k]] = found.values[k];
    check(dense == expected, "dense rows are the sparse ones");
  } else {
    reader.values(found.values.data(), 1);
  }
  return found;
}

void check_sparse(const Rows& found) {
  if (found.fault) return;
  check(found.indptr.front() == 0, "the first row begins at 0");
  check(found.indptr.back() == static_cast<Index>(found.values.size()), "the last row ends at the end");
  for (Index i = 0; i < found.rows; ++i) {
    for (Index k = found.indptr[i]; k < found.indptr[i + 1]; ++k) {
      check(found.values[k] != 0.0 && std::isfinite(found.values[k]), "a value is finite and not zero");
      check(k == found.indptr[i] || found.indices[k - 1] < found.indices[k], "indices ascend");
    }
  }
}

template <class Grammar>
Rows in_one_or_two(const Grammar& grammar, const char* data, Index size) {
  const Rows whole = read(Reader<Grammar>(grammar), data, {size});
  const void* line_end = std::memchr(data + size / 2, '\n', static_cast<std::size_t>(size - size / 2));
  if (line_end) {
    const Index cut = static_cast<const char*>(line_end) - data + 1;
    check(whole == read(Reader<Grammar>(grammar), data, {cut, size}), "two blocks are read like one");
  }
  return whole;
}

Table table_of(unsigned options) {
  const char delimiters[] = {',', '\t', ';', 0};
  std::vector<Column> columns;
  for (unsigned k = 0; k <= (options >> 2 & 3); ++k) columns.push_back(static_cast<Column>((options + k) % 3));
  return {delimiters[options & 3], options & 16 ? "\"" : "'\"", static_cast<char>(options & 32 ? '%' : 0), columns};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const unsigned options = bytes[0];
  const char* data = reinterpret_cast<const char*>(bytes) + 1;
  const Index length = static_cast<Index>(size) - 1;
  if (options >= 248) {
    read_numbers(data, data + length);
  } else if (options >= 128) {
    const Index most = options & 1 ? Index{1} << 40 : 20;
    check_sparse(in_one_or_two(Libsvm((options & 2) != 0, options >> 2 & 1, most), data, length));
  } else {
    in_one_or_two(table_of(options), data, length);
  }
  return 0;
}
