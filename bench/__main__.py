"""``python -m bench <command>``: see ``python -m bench --help`` and ``bench/README.md``."""

import os
import sys

if __name__ == "__main__":
    # Before NumPy is imported: not every BLAS can be told later.
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB"):
        suffix = "MAXIMUM_THREADS" if name == "VECLIB" else "NUM_THREADS"
        os.environ[f"{name}_{suffix}"] = "1"

    from bench.cli import main

    sys.exit(main())
