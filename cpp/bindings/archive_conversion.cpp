#include "archive_conversion.hpp"

#include <pybind11/numpy.h>

#include <cstdint>
#include <string>
#include <vector>

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

// A lone surrogate has no UTF-8 form: Python's own UnicodeEncodeError says so.
std::string to_utf8(const py::handle& text) {
  return text.attr("encode")("utf-8").cast<std::string>();
}

template <class Number>
void set_array(Archive& archive, const std::string& name, const py::array& array) {
  using RowMajor = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using AnyVector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;
  const py::array_t<Number, py::array::c_style | py::array::forcecast> values(array);
  if (values.ndim() == 0) {
    archive.set(name, *values.data());
  } else if (values.ndim() == 1) {
    archive.set(name, Eigen::Map<const AnyVector>(values.data(), values.size()));
  } else if (values.ndim() == 2) {
    archive.set(name, Eigen::Map<const RowMajor>(values.data(), values.shape(0), values.shape(1)));
  } else {
    throw Error("The array \"" + name + "\" has " + std::to_string(values.ndim()) +
                " dimensions: a model file holds at most two.");
  }
}

void set_value(Archive& archive, const std::string& name, const py::handle& value) {
  if (py::isinstance<py::str>(value)) return archive.set(name, to_utf8(value));
  const py::array array = py::array::ensure(value);
  const char kind = array ? array.dtype().kind() : 'O';
  const py::ssize_t width = array ? array.dtype().itemsize() : 0;
  if (kind == 'f' && width <= 8) return set_array<double>(archive, name, array);
  if (kind == 'b' || kind == 'i' || (kind == 'u' && width < 8)) {
    return set_array<std::int64_t>(archive, name, array);
  }
  throw py::type_error("The value of \"" + name + "\" is of type " +
                       std::string(py::str(py::type::of(value))) +
                       ": a model file holds str, and numbers and arrays of the types int64 and "
                       "float64.");
}

}  // namespace

Archive to_archive(const py::dict& entries) {
  Archive archive;
  for (const auto& [name, value] : entries) {
    if (!py::isinstance<py::str>(name)) {
      throw py::type_error("The entries of a model file are named by str.");
    }
    set_value(archive, to_utf8(name), value);
  }
  return archive;
}

namespace {

template <class Number>
py::object get_array(const Archive::Entry& entry) {
  const std::vector<py::ssize_t> shape(entry.shape.begin(), entry.shape.end());
  py::array_t<Number> values(shape);
  Number* const data = values.mutable_data();
  for (py::ssize_t i = 0; i < values.size(); ++i) {
    data[i] = detail::load_number<Number>(entry.payload.data() + 8 * i);
  }
  if (shape.empty()) return py::cast(*data);
  return values;
}

py::object get_value(const Archive::Entry& entry) {
  if (entry.type == Archive::Type::text) return py::str(entry.payload);
  if (entry.type == Archive::Type::integers) return get_array<std::int64_t>(entry);
  return get_array<double>(entry);
}

}  // namespace

py::dict to_dict(const Archive& archive) {
  py::dict entries;
  for (const auto& [name, entry] : archive.entries()) entries[py::str(name)] = get_value(entry);
  return entries;
}

}  // namespace parsimon::bindings
