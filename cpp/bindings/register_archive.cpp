#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "model_readers.hpp"

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

void set_item(Archive& archive, const py::handle& name, const py::handle& value) {
  if (!py::isinstance<py::str>(name)) {
    throw py::type_error("The entries of a model file are named by str.");
  }
  set_value(archive, to_utf8(name), value);
}

Archive from_dict(const py::dict& entries) {
  Archive archive;
  for (const auto& [name, value] : entries) set_item(archive, name, value);
  return archive;
}

py::object get_item(const Archive& archive, const std::string& name) {
  const auto found = archive.entries().find(name);
  if (found == archive.entries().end()) throw py::key_error(name);
  return get_value(found->second);
}

std::vector<std::string> keys(const Archive& archive) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : archive.entries()) names.push_back(name);
  return names;
}

// Python programs expect OSError and its subclasses from a file that cannot be used.
void translate_file_error(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const std::filesystem::filesystem_error& error) {
    const py::object exception = py::reinterpret_borrow<py::object>(PyExc_OSError)(
        error.code().value(), error.code().message(), py::cast(error.path1()).attr("__str__")());
    PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  }
}

std::map<std::string, ReadModel>& readers() {
  static std::map<std::string, ReadModel> all;
  return all;
}

py::object read_model(const Archive& archive, std::shared_ptr<Kernel> kernel) {
  const std::string algorithm = archive.get_text("algorithm");
  const auto found = readers().find(algorithm);
  require(found != readers().end(), "The model file holds a model of the algorithm " + algorithm +
                                        ", which this version of parsimon does not know.");
  return found->second(archive, std::move(kernel));
}

}  // namespace

void add_reader(const std::string& algorithm, ReadModel read) {
  readers()[algorithm] = std::move(read);
}

void register_archive(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::register_local_exception_translator(&translate_file_error);

  // An entry is a str, an int or float, or an int64 or float64 array of one or two dimensions, and
  // comes back as what it was (0-d arrays as numbers).
  py::class_<Archive>(module, "Archive")
      .def(py::init(&from_dict), py::arg("entries") = py::dict())
      .def("keys", &keys)
      .def("__contains__", &Archive::has, py::arg("name"))
      .def("__getitem__", &get_item, py::arg("name"))
      .def(
          "get",
          [](const Archive& archive, const std::string& name, const py::object& otherwise) {
            return archive.has(name) ? get_item(archive, name) : otherwise;
          },
          py::arg("name"), py::arg("otherwise") = py::none())
      .def("__setitem__", &set_item, py::arg("name"), py::arg("value"))
      .def_static("read", &Archive::read, py::arg("path"), Unlocked())
      .def("write", &Archive::write, py::arg("path"), Unlocked(),
           "Writes the file under a temporary name and renames it to `path`.")
      .def_static(
          "from_bytes",
          [](const py::bytes& bytes) { return Archive::from_bytes(std::string(bytes)); },
          py::arg("bytes"))
      .def(
          "to_bytes", [](const Archive& archive) { return py::bytes(archive.to_bytes()); },
          "The content that write() would give the file.");

  module.def("read_model", &read_model, py::arg("archive"), py::arg("kernel") = py::none(),
             "The model in an archive. `kernel` stands in for one that cannot be written down.");
}

}  // namespace parsimon::bindings
