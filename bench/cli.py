"""The command line: each command is a module with ``add_arguments`` and ``run``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

# A command is a module: its docstring is the help, add_arguments(parser) declares the options,
# run(options) returns the exit code. MissingDataError ends it with its message.
COMMANDS = {
    "speed": "bench.speed",
    "limits": "bench.limits",
    "streams": "bench.streams",
    "novelty": "bench.novelty",
    "text": "bench.text",
    "soak": "bench.soak",
    "scale": "bench.scale",
    "accuracy": "bench.accuracy",
    "compress": "bench.compress",
    "refine": "bench.refine",
    "densities": "bench.densities",
    "merging": "bench.merging",
    "compare": "bench.compare",
    "paper": "bench.papers",
    "intensity": "bench.papers.intensity",
    "policy": "bench.papers.policy",
    "control": "bench.papers.control",
}


class MissingDataError(Exception):
    """A command needs data that are not here; the message says which and what to do."""


@contextmanager
def left_out() -> Iterator[None]:
    """Go on after the ``with`` if data are missing, and say so."""
    try:
        yield
    except MissingDataError as error:
        print(f"Left out: {error}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except MissingDataError as error:
        print(error, file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of parsimon.")
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, path in COMMANDS.items():
        module = import_module(path)
        summary = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name, help=summary.splitlines()[0].rstrip("."), description=summary.split("\n\n")[0]
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, command=name)
    return parser


def positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value
