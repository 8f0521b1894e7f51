"""``python -m parsimon``: models from files, and where the C++ headers are."""

import sys

from ._cli import main

if __name__ == "__main__":
    sys.exit(main())
