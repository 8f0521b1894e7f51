"""Figures as PNG: curves side by side. Without matplotlib there is a sentence instead."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Panel:
    """One plot of a figure: named curves, each a pair of sequences."""

    title: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x_label: str = "samples processed"
    logarithmic: bool = False


def new_sheet(path: Path, panels: int = 1, width: float = 4.2, height: float = 3.6) -> Any:
    """Return an empty matplotlib figure for so many plots in a row; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(
            f"{path} was not drawn: it needs matplotlib. "
            "Install it with: pip install 'parsimon[plot]'",
            file=sys.stderr,
        )
        return None
    return Figure(figsize=(width * panels, height), dpi=110, layout="constrained")


def save(sheet: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.savefig(path)
    print(f"  {path}")


def draw_panels(path: Path, panels: Sequence[Panel]) -> None:
    """Draw plots in a row with one legend below; a name has the same colour in all of them."""
    sheet = new_sheet(path, len(panels))
    if sheet is None:
        return
    from parsimon.plotting._common import PALETTE

    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    handles = {}
    for axes, panel in zip(sheet.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, (x, y) in panel.curves.items():
            index = names.index(name)
            style = ("-", "--", ":")[index // len(PALETTE) % 3]
            color = PALETTE[index % len(PALETTE)]
            marker = "o" if len(x) == 1 else None
            (handles[name],) = axes.plot(x, y, style, color=color, marker=marker, linewidth=1.6)
        axes.set(title=panel.title, xlabel=panel.x_label)
        axes.locator_params(axis="x", nbins=5)
        if panel.logarithmic:
            axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
    sheet.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower center",
        ncols=min(4, 2 * len(panels), len(names)),
        frameon=False,
    )
    save(sheet, path)
