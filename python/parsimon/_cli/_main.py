"""Which commands there are, and how they end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from parsimon._build import __version__, build_info, get_cmake_dir, get_include

from . import _evaluate, _inspect, _predict, _train

COMMANDS = {
    "train": _train,
    "predict": _predict,
    "evaluate": _evaluate,
    "inspect": _inspect,
}

EXAMPLES = """examples:
  python -m parsimon train data.csv --target label -o model.parsimon --test more.csv
  python -m parsimon train data.parquet --target price -o model.parsimon --stream
  zcat data.csv.gz | python -m parsimon train - --format csv --target label -o model.parsimon
  python -m parsimon predict model.parsimon new.csv > predictions.csv
  python -m parsimon evaluate model.parsimon test.csv --target label --at-least 0.9
  python -m parsimon inspect model.parsimon

exit codes: 0 done; 1 it could not be done, or a score is below --at-least; 2 wrong arguments;
130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        return about(options, parser)
    if not sys.stderr.isatty():  # where a bar would be lines of a log
        options.quiet = True
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("Interrupted; nothing was written.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the predictions has enough; Python must not try to write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        print(f"parsimon {options.command}: {error}", file=sys.stderr)
        return 1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="python -m parsimon",
        description="Kernel models that stay small, trained on files and streams.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=None)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--version", action="version", version=__version__)
    choice.add_argument("--build-info", action="store_true", help="how the core was built")
    choice.add_argument("--cmake-dir", action="store_true", help="folder of parsimonConfig.cmake")
    choice.add_argument("--include-dir", action="store_true", help="folder of the C++ headers")
    commands = parser.add_subparsers(metavar="command")
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name, help=summary.splitlines()[0].rstrip("."), description=summary
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, command=name)
    return parser


def about(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Say what is asked for without a command; what can be done, if nothing is."""
    if options.cmake_dir:
        print(get_cmake_dir())
    elif options.include_dir:
        print(get_include())
    elif options.build_info:
        for key, value in build_info().items():
            print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")
    else:
        parser.print_help()
    return 0
