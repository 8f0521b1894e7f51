"""``python -m parsimon``: where the C++ headers are, and how the core was built."""

import argparse

from ._build import __version__, build_info, get_cmake_dir, get_include


def main() -> None:
    """Print what is asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m parsimon", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--cmake-dir", action="store_true", help="folder of parsimonConfig.cmake")
    choice.add_argument("--include-dir", action="store_true", help="folder of the C++ headers")
    choice.add_argument("--build-info", action="store_true", help="how the core was built")
    choice.add_argument("--version", action="version", version=__version__)
    arguments = parser.parse_args()
    if arguments.cmake_dir:
        print(get_cmake_dir())
    elif arguments.include_dir:
        print(get_include())
    else:
        for key, value in build_info().items():
            print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")


if __name__ == "__main__":
    main()
