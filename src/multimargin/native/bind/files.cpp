// Python bindings of data files: text to arrays and back. Checks shapes, releases the GIL.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "files/libsvm.hpp"
#include "files/reader.hpp"
#include "files/table.hpp"
#include "files/writer.hpp"

namespace multimargin::bind {
namespace {

using namespace files;
using Bytes = ConstVectorOf<std::uint8_t>;

std::pair<Index, Index> as_pair(const Place& place) { return {place.line, place.column}; }

nb::bytes as_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// (line, column, message) of the first line that cannot be read, or None.
template <class Grammar>
nb::object feed(Reader<Grammar>& reader, const Bytes& block, int n_threads) {
  checked_threads(n_threads);
  std::optional<Fault> fault;
  {
    nb::gil_scoped_release released;
    fault = reader.feed(reinterpret_cast<const char*>(block.data()), length(block), n_threads);
  }
  if (!fault) return nb::none();
  return nb::make_tuple(fault->place.line, fault->place.column, as_bytes(fault->what));
}

// The different words of a column, and the line in which each comes first.
template <class Grammar>
nb::tuple words(const Reader<Grammar>& reader, std::size_t column) {
  require(column < reader.word_columns(), "column: a column of words expected, counted among those");
  const Words& found = reader.words(column);
  nb::list names, lines;
  for (const std::string& name : found.names()) names.append(as_bytes(name));
  for (const Index line : found.first_lines()) lines.append(line);
  return nb::make_tuple(names, lines);
}

template <class Grammar>
void codes(const Reader<Grammar>& reader, std::size_t column, const WritableIds& out) {
  require(column < reader.word_columns(), "column: a column of words expected, counted among those");
  const std::vector<std::uint32_t>& found = reader.words(column).codes();
  require(length(out) == static_cast<Index>(found.size()), "out: one code for each row expected");
  std::copy(found.begin(), found.end(), out.data());
}

template <class Grammar>
nb::class_<Reader<Grammar>> bind_reader(nb::module_& m, const char* name) {
  using R = Reader<Grammar>;
  return nb::class_<R>(m, name)
      .def("feed", &feed<Grammar>, "block"_a, "n_threads"_a, "Read whole lines.")
      .def("words", &words<Grammar>, "column"_a, "The different words of a column of words, and their first lines.")
      .def("codes", &codes<Grammar>, "column"_a, "out"_a.noconvert(), "Which of these words each row has.")
      .def_prop_ro("lines", &R::lines)
      .def_prop_ro("rows", &R::rows)
      .def_prop_ro("entries", &R::entries)
      .def_prop_ro("nbytes", &R::nbytes)
      .def_prop_ro("range", [](const R& reader) {
        return std::tuple(reader.range().least, reader.range().most, reader.range().whole);
      });
}

using Dense = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flat = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Calls work(pointer) for the type of an array that values are written to.
template <class A, class Work>
void with_values(const A& array, Work work) {
  const auto try_type = [&]<class T>(std::type_identity<T>) {
    if (array.dtype() != nb::dtype<T>()) return false;
    work(static_cast<T*>(array.data()));
    return true;
  };
  const bool done = try_type(std::type_identity<std::uint8_t>{}) || try_type(std::type_identity<std::int8_t>{}) ||
                    try_type(std::type_identity<std::int16_t>{}) || try_type(std::type_identity<std::int32_t>{}) ||
                    try_type(std::type_identity<std::int64_t>{}) || try_type(std::type_identity<float>{}) ||
                    try_type(std::type_identity<double>{});
  if (!done) throw nb::type_error("values must be uint8, int8, int16, int32, int64, float32 or float64");
}

void table_values(Reader<Table>& reader, const Dense& out, int n_threads) {
  require(length(out) * length(out, 1) == reader.entries(), "out: a place for each number expected");
  with_values(out, [&](auto* values) {
    nb::gil_scoped_release released;
    reader.values(values, checked_threads(n_threads));
  });
}

void check_base(const Reader<Libsvm>& reader, Index base, Index width) {
  require(base >= 0 && (reader.most_index() < 0 || reader.least_index() >= base), "an index is smaller than base");
  require(reader.most_index() - base < width, "an index is out of range");
}

void libsvm_dense(Reader<Libsvm>& reader, const Dense& out, Index base, int n_threads) {
  require(length(out) == reader.rows(), "out: as many rows as were read expected");
  check_base(reader, base, length(out, 1));
  with_values(out, [&](auto* values) {
    nb::gil_scoped_release released;
    reader.dense(values, length(out, 1), base, checked_threads(n_threads));
  });
}

template <class I>
void libsvm_csr(Reader<Libsvm>& reader, const Flat& data, const Array<I, 1>& indices, const Array<I, 1>& indptr,
                Index base, int n_threads) {
  require(length(data) == reader.entries() && length(indices) == reader.entries(), "csr: one place per entry expected");
  require(length(indptr) == reader.rows() + 1, "csr: indptr has the wrong length");
  const Index most = std::numeric_limits<I>::max();
  check_base(reader, base, std::numeric_limits<Index>::max() - std::max<Index>(base, 0));
  require(reader.entries() <= most && reader.most_index() - base <= most, "csr: the type of the indices is too short");
  with_values(data, [&](auto* values) {
    nb::gil_scoped_release released;
    reader.csr(values, indices.data(), indptr.data(), base, checked_threads(n_threads));
  });
}

void check_style(const Style& style, const Ids& codes, Index n) {
  require(length(codes) == n, "codes: one for each row expected");
  for (const auto* texts : {&style.before, &style.after})
    require(texts->size() == 1 || all_within(codes.data(), n, 0, static_cast<Index>(texts->size())),
            "codes: one text for each code expected");
}

template <class T>
void bind_writers(nb::module_& m) {
  m.def("write_dense", [](const ConstMatrixOf<T>& x, const Ids& codes, const Style& style) {
    check_style(style, codes, length(x));
    std::string text;
    {
      nb::gil_scoped_release released;
      text = write_dense(x.data(), length(x), length(x, 1), codes.data(), style);
    }
    return as_bytes(text);
  }, "X"_a.noconvert(), "codes"_a.noconvert(), "style"_a, "Rows of numbers as text.");
  m.def("write_sparse", [](const ConstVectorOf<T>& data, const Ids& indices, const Ids& indptr, Index base,
                           const Ids& codes, const Style& style) {
    const Index n = length(indptr) - 1;
    require(n >= 0 && indptr.data()[0] == 0 && std::is_sorted(indptr.data(), indptr.data() + n + 1),
            "csr: indptr must start at 0 and not decrease");
    require(indptr.data()[n] <= length(data) && indptr.data()[n] <= length(indices),
            "csr: indptr exceeds data or indices");
    require(0 <= base && base <= kMostNamed, "base: a number in 0..2^53 expected");
    require(all_within(indices.data(), indptr.data()[n], 0, kMostNamed + 1), "csr: indices must be in 0..2^53");
    check_style(style, codes, n);
    std::string text;
    {
      nb::gil_scoped_release released;
      text = write_sparse(data.data(), indices.data(), indptr.data(), n, base, codes.data(), style);
    }
    return as_bytes(text);
  }, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "base"_a, "codes"_a.noconvert(), "style"_a,
     "Sparse rows as text.");
}

}  // namespace

void bind_files(nb::module_& m) {
  bind_reader<Libsvm>(m, "LibsvmReader")
      .def("__init__", [](Reader<Libsvm>* self, bool labelled, Index least_index, Index most_index) {
        new (self) Reader<Libsvm>(Libsvm(labelled, least_index, most_index));
      }, "labelled"_a, "least_index"_a, "most_index"_a)
      .def_prop_ro("indices", [](const Reader<Libsvm>& r) { return std::pair(r.least_index(), r.most_index()); })
      .def_prop_ro("places", [](const Reader<Libsvm>& r) {
        return std::pair(as_pair(r.least_place()), as_pair(r.most_place()));
      })
      .def("dense", &libsvm_dense, "out"_a.noconvert(), "base"_a, "n_threads"_a, "All rows, into a matrix of zeros.")
      .def("csr", &libsvm_csr<std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
           "base"_a, "n_threads"_a, "All rows, as arrays of a CSR matrix.")
      .def("csr", &libsvm_csr<std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
           "base"_a, "n_threads"_a);
  bind_reader<Table>(m, "TableReader")
      .def("__init__", [](Reader<Table>* self, int delimiter, std::string quotes, int comment, const Bytes& columns) {
        std::vector<Column> kinds;
        for (Index k = 0; k < length(columns); ++k) {
          require(columns.data()[k] <= 2, "columns: 0 (numbers), 1 (words) or 2 (skipped) expected");
          kinds.push_back(static_cast<Column>(columns.data()[k]));
        }
        require(!kinds.empty(), "a table needs a column");
        new (self) Reader<Table>(
            Table(static_cast<char>(delimiter), std::move(quotes), static_cast<char>(comment), std::move(kinds)));
      }, "delimiter"_a, "quotes"_a, "comment"_a, "columns"_a)
      .def("values", &table_values, "out"_a.noconvert(), "n_threads"_a, "All numbers, row by row.");
  nb::class_<Style>(m, "TextStyle")
      .def("__init__", [](Style* self, const std::vector<nb::bytes>& before, const std::vector<nb::bytes>& after,
                          nb::bytes separator, nb::bytes pair, bool leading) {
        const auto text = [](const nb::bytes& b) { return std::string(b.c_str(), b.size()); };
        require(!before.empty() && !after.empty(), "style: a text before and after a row expected");
        new (self) Style{{}, {}, text(separator), text(pair), leading};
        for (const nb::bytes& each : before) self->before.push_back(text(each));
        for (const nb::bytes& each : after) self->after.push_back(text(each));
      }, "before"_a, "after"_a, "separator"_a, "pair"_a, "leading"_a);
  bind_writers<std::uint8_t>(m);
  bind_writers<std::int8_t>(m);
  bind_writers<std::int16_t>(m);
  bind_writers<std::int32_t>(m);
  bind_writers<std::int64_t>(m);
  bind_writers<float>(m);
  bind_writers<double>(m);
}

}  // namespace multimargin::bind
