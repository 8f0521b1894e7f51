#include <pybind11/stl/filesystem.h>

#include <exception>
#include <filesystem>
#include <string>

#include "archive_conversion.hpp"
#include "bindings.hpp"

namespace py = pybind11;

namespace parsimon::bindings {

namespace {

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

}  // namespace

void register_archive(py::module_& module) {
  py::register_local_exception_translator(&translate_file_error);

  module.def(
      "read_archive",
      [](const std::filesystem::path& path) {
        const Archive archive = [&path] {
          const py::gil_scoped_release unlocked;
          return Archive::read(path);
        }();
        return to_dict(archive);
      },
      py::arg("path"), "The entries of a model file as a dict, sorted by name.");

  module.def(
      "write_archive",
      [](const std::filesystem::path& path, const py::dict& entries) {
        const Archive archive = to_archive(entries);
        const py::gil_scoped_release unlocked;
        archive.write(path);
      },
      py::arg("path"), py::arg("entries"),
      "Writes a model file under a temporary name and renames it to `path`.");

  module.def(
      "archive_to_bytes",
      [](const py::dict& entries) { return py::bytes(to_archive(entries).to_bytes()); },
      py::arg("entries"), "The content that write_archive would give the file.");

  module.def(
      "archive_from_bytes",
      [](const py::bytes& bytes) {
        return to_dict(Archive::from_bytes(static_cast<std::string>(bytes)));
      },
      py::arg("bytes"), "The inverse of archive_to_bytes.");
}

}  // namespace parsimon::bindings
