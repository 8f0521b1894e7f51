"""Online kernel learning with certified sparsity."""

from ._build import __version__, build_info, get_cmake_dir, get_include

__all__ = ["__version__", "build_info", "get_cmake_dir", "get_include"]
