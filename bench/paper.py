"""The experiments of a paper: its tables with the printed figures beside ours."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from bench.cli import positive_int

PAPERS = ("slkl",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("--runs", type=positive_int, help="the paper's own number by default")
    parser.add_argument("--quick", action="store_true", help="little data: whether it works")
    parser.add_argument("--out", type=Path, help="folder for files with every figure")


def run(options: argparse.Namespace) -> int:
    return int(import_module(f"bench.papers.{options.paper}").run(options))
