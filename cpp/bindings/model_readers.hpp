#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <parsimon/io/archive.hpp>
#include <parsimon/kernel/kernel.hpp>
#include <string>

namespace parsimon::bindings {

// The one place that knows which algorithm's model a file holds: each register_<algorithm> adds the
// function that reads its own.
using ReadModel = std::function<pybind11::object(const Archive&, KernelPtr)>;

void add_reader(const std::string& algorithm, ReadModel read);

}  // namespace parsimon::bindings
