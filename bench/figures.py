"""Figures as PNG. Without matplotlib there is a sentence instead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parsimon.plotting._common import PALETTE

SIZE = (4.2, 3.6)  # inches of one plot


def write(
    path: Path,
    draw: Callable[[Sequence[Any]], None],
    panels: int = 1,
    size: tuple[float, float] = SIZE,
    **subplots: Any,
) -> None:
    """Write a figure of this many plots in a row; `draw` gets their axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(
            f"{path} was not drawn: it needs matplotlib. "
            "Install it with: pip install 'parsimon[plot]'",
            file=sys.stderr,
        )
        return
    sheet = Figure(figsize=(size[0] * panels, size[1]), dpi=110, layout="constrained")
    draw(sheet.subplots(1, panels, squeeze=False, **subplots)[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.savefig(path)
    print(f"  {path}")


def bare(axes: Any) -> None:
    """Take the frame away above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: Any, handles: Sequence[Any], names: Sequence[str], **more: Any) -> None:
    """Write one legend for all plots of the figure below them."""
    axes.figure.legend(handles, names, loc="outside lower center", frameon=False, **more)


@dataclass(frozen=True)
class Panel:
    """One plot of a figure: named curves, each of x and y, or of x and the y of several runs."""

    title: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[Any]]]
    x_label: str = "samples processed"
    logarithmic: bool = False
    log_x: bool = False
    points: Sequence[str] = ()  # of these names there are points, no lines


def draw_panels(path: Path, panels: Sequence[Panel]) -> None:
    """Draw plots in a row with one legend below; a name has the same colour in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))

    def draw(row: Sequence[Any]) -> None:
        colors, handles = PALETTE, {}
        for axes, panel in zip(row, panels, strict=True):
            for name, (x, y) in panel.curves.items():
                index = names.index(name)
                look: dict[str, Any] = {"linestyle": ("-", "--", ":")[index // len(colors) % 3]}
                look["linewidth"] = 1.6 if np.ndim(y) == 1 else 0.7
                if name in panel.points or len(x) == 1:
                    look = {"linestyle": "none", "marker": "."}
                lines = axes.plot(x, np.transpose(y), color=colors[index % len(colors)], **look)
                handles[name] = lines[0]
            axes.set(title=panel.title, xlabel=panel.x_label)
            if panel.log_x:
                axes.set_xscale("log")
            else:
                axes.locator_params(axis="x", nbins=5)
            if panel.logarithmic:
                axes.set_yscale("log")
            bare(axes)
        columns = min(4, 2 * len(panels), len(names))
        legend_below(row[0], [handles[name] for name in names], names, ncols=columns)

    write(path, draw, len(panels))
