"""How results are shown and kept: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, default=plain) + "\n", encoding="utf-8")
    print(f"Written to {path}.")


def plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's, and all else into text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
