#pragma once

// The one place that states the version: pyproject.toml and CMakeLists.txt read it from here.
#define PARSIMON_VERSION "0.1.0"
