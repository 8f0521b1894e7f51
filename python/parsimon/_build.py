"""What was built, and where the C++ side of the package lies."""

from pathlib import Path
from typing import Any

from . import _core

_PACKAGE = Path(__file__).resolve().parent

__version__: str = _core.build_info()["version"]


def get_include() -> str:
    """Return the folder to pass to a C++ compiler for ``#include <parsimon/...>``.

    Eigen's headers lie in its subfolder ``eigen3``, which has to be passed as well; CMake projects
    get both from :func:`get_cmake_dir`.
    """
    return str(_PACKAGE / "include")


def get_cmake_dir() -> str:
    """Return the folder of ``parsimonConfig.cmake``, to pass as ``-Dparsimon_DIR=...``."""
    return str(_PACKAGE / "share" / "cmake" / "parsimon")


def build_info() -> dict[str, Any]:
    """Return how the compiled core in use was built.

    Returns
    -------
    dict
        ``version``; ``simd``, the instruction set in use, and ``simd_available``, those that are
        both installed and supported by this processor; ``compiler``, ``cxx_standard``, ``eigen``
        (its version) and ``build_type``.
    """
    return {**_core.build_info(), "simd_available": list(_core.available_levels)}
