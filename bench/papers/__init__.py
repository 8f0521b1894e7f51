"""The experiments of a paper: its tables with the printed figures beside ours, and its figures.

Tables are printed and written as CSV, figures as PNG. Every run is kept in a file; what has been
run before with the same settings is not run again.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from bench.cli import positive_int

# Modules beside this one, each with run(options) -> exit code; options are the arguments below.
PAPERS = ("polk", "colk", "spppot", "slkl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("papers", choices=PAPERS, nargs="+", metavar=f"{{{','.join(PAPERS)}}}")
    add = parser.add_argument
    add("--runs", type=positive_int, help="seeds per row; the paper's own by default")
    add("--quick", action="store_true", help="little data: whether it works, not how well")
    add("--out", type=Path, default=Path("build/paper"), help="folder for all files; build/paper")


def run(options: argparse.Namespace) -> int:
    codes = []
    for name in options.papers:
        paper = import_module(f"bench.papers.{name}")
        print(f"== {(paper.__doc__ or name).splitlines()[0]}")
        codes.append(int(paper.run(options)))
    return max(codes)
