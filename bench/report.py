"""How results are shown, judged and kept: tables, verdicts; CSV, Markdown and JSON."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import machine

if TYPE_CHECKING:
    from bench.runner import Row


def significant(value: float, digits: int = 3) -> str:
    """Write a number with this many significant digits, and all of those before the point."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def mean_and_sd(values: Sequence[float], digits: int = 3) -> str:
    """Write a mean, and the standard deviation over the runs if there are several."""
    mean = significant(float(np.mean(values)), digits)
    return f"{mean} ({significant(float(np.std(values)), 2)})" if len(values) > 1 else mean


two_digits = partial(mean_and_sd, digits=2)


def one(form: str) -> Callable[[Sequence[float]], str]:
    """Write the value of a single run in a format."""
    return lambda values: format(values[0], form)


def span(values: Sequence[float], form: str = ",.0f") -> str:
    """Write a range, or one number if they are all the same; whole ones by default."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def times(count: int, what: str = "run") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def brackets(printed: Any) -> str:
    """Write what is printed elsewhere, to stand behind a figure of ours; NaN: it diverges."""
    if printed is None:
        return ""
    if isinstance(printed, float):
        printed = "diverges" if np.isnan(printed) else f"{printed:g}"
    return f" [{printed:,}]" if isinstance(printed, int) else f" [{printed}]"


@dataclass(frozen=True)
class Column:
    """A column of a table: a figure over the runs of a row, and how it is written."""

    title: str
    figure: str
    write: Callable[[Sequence[Any]], str] = mean_and_sd

    def cell(self, row: Row) -> str:
        """Write the figure; a dash if no run knows it, nothing if no run has it."""
        values = row.values(self.figure)
        known = [value for value in values if value is not None]
        return self.write(known) if known else "-" if values else ""


def cells(row: Row, columns: Sequence[Column]) -> list[str]:
    """Return a line of a table: the method, then its figures with the printed ones behind.

    The first figure says how many runs diverged, or why there are none.
    """
    texts = [column.cell(row) for column in columns]
    if not row.sound:
        texts[0] = row.absent or "diverges"
    printed = dict(row.method.printed)
    for index, column in enumerate(columns):  # behind the first column of a figure
        texts[index] = (texts[index] + brackets(printed.pop(column.figure, None))).strip()
    if row.sound and row.diverged:
        texts[0] += f", diverges {row.diverged} of {len(row.results)}"
    return [row.method.name, *texts]


@dataclass(frozen=True)
class Table:
    """What is printed under a title; notes come below."""

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    @classmethod
    def of_rows(cls, title: str, rows: Sequence[Row], columns: Sequence[Column]) -> Table:
        """Return one line per row; notes are what trainings warned of."""
        header = ("method", *(column.title for column in columns))
        notes = {note for row in rows for result in row.results for note in result.warnings}
        return cls(title, header, [cells(row, columns) for row in rows], sorted(notes))

    def after(self, title: str, texts: Iterable[Any]) -> Table:
        """Return the table with one more column, before the others."""
        lines = [[str(text), *line] for text, line in zip(texts, self.lines, strict=True)]
        return replace(self, header=(title, *self.header), lines=lines)

    def show(self) -> None:
        print("\n".join(["", self.title, "", self.markdown, *self.notes]))

    @property
    def markdown(self) -> str:
        """The table as Markdown, columns as wide as their longest cell."""
        ruled = [self.header, ["---"] * len(self.header), *self.lines]
        widths = [max(map(len, column)) for column in zip(*ruled, strict=True)]
        padded = [map(str.ljust, line, widths) for line in ruled]
        return "\n".join(f"| {' | '.join(line)} |" for line in padded)

    def publish(self, path: Path) -> None:
        """Print it, and write it as CSV to the path and as Markdown beside it."""
        self.show()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.header, *self.lines])
        path.with_suffix(".md").write_text(f"{self.markdown}\n", encoding="utf-8")


@dataclass(frozen=True)
class Promise:
    """A measured figure and its promise: at most, or at least if `larger` is better."""

    name: str
    measured: float
    promised: float
    detail: str = ""
    larger: bool = False

    @property
    def holds(self) -> bool:
        return self.measured >= self.promised if self.larger else self.measured <= self.promised

    def __str__(self) -> str:
        verdict, sign = "ok  " if self.holds else "MISS", ">=" if self.larger else "<="
        detail = f"; {self.detail}" if self.detail else ""
        return f"{verdict} {self.name}: {self.measured:.3g} ({sign} {self.promised:g}){detail}"


at_most, at_least = Promise, partial(Promise, larger=True)


def verdict(promises: Iterable[Promise]) -> tuple[int, list[dict[str, Any]]]:
    """Print each promise as it comes; return the exit code, and all of them for JSON."""
    found = []
    for promise in promises:
        print(promise, flush=True)
        found.append({**asdict(promise), "holds": promise.holds})
    return 0 if all(each["holds"] for each in found) else 1, found


def conclude(
    options: argparse.Namespace, found: Mapping[str, Sequence[Row]], promises: Iterable[Promise]
) -> int:
    """Judge what was found, unless it is of few samples only, and write all as JSON."""
    code, judged = verdict([] if options.samples else promises)
    write_json(options, rows=as_dicts(found), promises=judged)
    return code


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def write_json(options: argparse.Namespace, **content: Any) -> None:
    """Write all to the file that was asked for, if one was: options, content, the machine."""
    if options.json:
        content = {**vars(options), **content, **machine.environment()}
        del content["run"], content["json"]
        text = json.dumps(content, indent=2, default=plain)
        options.json.write_text(f"{text}\n", encoding="utf-8")
        print(f"Written to {options.json}.")


def as_dicts(found: Mapping[str, Sequence[Row]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [row.as_dict() for row in rows] for name, rows in found.items()}


def plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's, and all else into text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
