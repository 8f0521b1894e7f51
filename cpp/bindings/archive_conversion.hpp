#pragma once

#include <pybind11/pybind11.h>

#include <parsimon/io/archive.hpp>

namespace parsimon::bindings {

// A model file as a dict and back. An entry is a str, an int or float, or an int64 or float64 array
// of one or two dimensions, and comes back as what it was (0-d arrays as numbers).
Archive to_archive(const pybind11::dict& entries);
pybind11::dict to_dict(const Archive& archive);

}  // namespace parsimon::bindings
