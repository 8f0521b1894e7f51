"""Where in a domain points can be: polygons or a function; and features that go round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from parsimon._checks import is_integer

from ._polygons import Polygons

Array = NDArray[np.float64]

# Points of a cell, along each feature, that tell how much of it is inside, and cells up to which so
# many are asked.
_PARTS = ((4, 1 << 14), (2, 1 << 18))
# The same of cells at the border, if there are no more points than that in all.
_BORDER_PARTS, _MOST_AT_BORDER = (64, 16, 6), 1 << 22
# Cells along each feature in which a window that is a function is looked for, and measured.
_LOOK, _MEASURE = (1 << 14, 1 << 9, 1 << 6), (1 << 12, 1 << 8, 1 << 5)
# Points that measure it where there are more features.
_SCATTERED = 1 << 17


class Window:
    """A part of a domain, by a function of points or as polygons."""

    def __init__(self, made_of: Callable[[Array], Any] | Polygons) -> None:
        self._made_of = made_of
        self._polygons = made_of if isinstance(made_of, Polygons) else None
        self._known: dict[bytes, tuple[Array, float]] = {}

    @property
    def rings(self) -> list[Array] | None:
        """The rings of polygons; None if it is a function."""
        return None if self._polygons is None else self._polygons.rings

    def contains(self, X: Array) -> NDArray[np.bool_]:
        """Tell which points are inside; the edges of polygons are."""
        if isinstance(self._made_of, Polygons):
            return self._made_of.contain(X)
        inside = np.asarray(self._made_of(X))
        if inside.shape != (len(X),) or inside.dtype != bool:
            raise ValueError(
                f"A window that is a function must return True or False for each of the {len(X)} "
                f"points it is given; it returned an array of {inside.dtype} of the shape "
                f"{inside.shape}."
            )
        return inside

    def bounds(self) -> Array | None:
        """Return the box around polygons; None: nobody knows."""
        return None if self._polygons is None else self._polygons.bounds()

    def around(self, domain: Array) -> Array:
        """Return a box in the domain that holds the window, as far as it has been found."""
        return self._measured(domain)[0]

    def volume(self, domain: Array) -> float:
        """Return the volume of what is inside, in the domain."""
        return self._measured(domain)[1]

    def shares(self, edges: Sequence[Array]) -> Array:
        """Return how much of each cell is inside; edges: of the cells, along each feature."""
        if self._polygons is not None:
            return self._polygons.shares(*edges)
        shape = tuple(len(edge) - 1 for edge in edges)
        count = float(np.prod([float(n) for n in shape]))
        low = np.stack(np.meshgrid(*(e[:-1] for e in edges), indexing="ij"), -1)
        width = np.stack(np.meshgrid(*(np.diff(e) for e in edges), indexing="ij"), -1)
        parts = next((parts for parts, most in _PARTS if count <= most), 1)
        low, width = low.reshape(-1, len(edges)), width.reshape(-1, len(edges))
        found = self._means(low, width, parts)
        border = _border(found.reshape(shape)).ravel()
        finer = _BORDER_PARTS[len(edges) - 1]
        if 0 < border.sum() * finer ** len(edges) <= _MOST_AT_BORDER:
            found[border] = self._means(low[border], width[border], finer)
        return found

    def _means(self, low: Array, width: Array, parts: int) -> Array:
        """Return the share of cells that is inside, from so many points along each feature."""
        along = [(np.arange(parts) + 0.5) / parts] * low.shape[1]
        within = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1).reshape(-1, low.shape[1])
        points = (low[:, None] + width[:, None] * within).reshape(-1, low.shape[1])
        return np.asarray(self.contains(points).reshape(len(low), -1).mean(axis=1))

    def _measured(self, domain: Array) -> tuple[Array, float]:
        key = domain.tobytes()
        if key not in self._known:
            self._known[key] = self._measure(domain)
        return self._known[key]

    def _measure(self, domain: Array) -> tuple[Array, float]:
        low, high = domain.T
        if self._polygons is not None:
            box = self._polygons.bounds()
            box = np.column_stack([np.maximum(box[:, 0], low), np.minimum(box[:, 1], high)])
            if not (box[:, 0] < box[:, 1]).all():
                return domain, 0.0
            return box, self._polygons.area(box)
        if len(domain) > len(_LOOK):
            unit = qmc.Halton(len(domain), scramble=False).random(_SCATTERED)
            inside = self.contains(low + unit * (high - low))
            return domain, float(np.prod(high - low) * inside.mean())
        cells = _LOOK[len(domain) - 1]
        step = (high - low) / cells
        at = np.stack(np.meshgrid(*[np.arange(cells)] * len(domain), indexing="ij"), axis=-1)
        at = at.reshape(-1, len(domain))
        at = at[self.contains(low + (at + 0.5) * step)]
        if not len(at):
            return domain, 0.0
        first, last = at.min(axis=0) - 1, at.max(axis=0) + 2
        ends = np.maximum(low + first * step, low), np.minimum(low + last * step, high)
        count = _MEASURE[len(domain) - 1] + 1
        edges = [np.linspace(a, b, count) for a, b in zip(*ends, strict=True)]
        volume = float(np.prod(ends[1] - ends[0]) * self.shares(edges).mean())
        return np.column_stack(ends), volume


def _border(shares: Array) -> NDArray[np.bool_]:
    """Tell which cells are partly inside, or beside one of which more or less is."""
    border = (shares > 0) & (shares < 1)
    for j in range(shares.ndim):
        along = np.moveaxis(shares, j, 0)
        differs = along[1:] != along[:-1]
        view = np.moveaxis(border, j, 0)
        view[1:] |= differs
        view[:-1] |= differs
    return border


def check_window(name: str, window: Any) -> None:
    """Refuse what is neither a function nor polygons."""
    window_of(window, name)


def window_of(window: Any, name: str = "window") -> Window | None:
    """Return the window that was given, or None."""
    if window is None:
        return None
    geometry = getattr(window, "__geo_interface__", window)
    if isinstance(geometry, Mapping):
        return _made_of(_rings_of(geometry, name), name)
    if callable(window):
        return Window(window)
    try:
        one = np.ndim(window[0][0]) == 0
        rings = [np.asarray(ring, dtype=float) for ring in ([window] if one else window)]
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise ValueError(
            f"{name} must be a function of points, a polygon as a list of corners (x, y), a list "
            f"of such rings, or a Polygon or MultiPolygon of shapely or GeoJSON; got {window!r}."
        ) from error
    return _made_of(rings, name)


def _rings_of(geometry: Mapping[str, Any], name: str) -> list[Array]:
    kind, corners = geometry.get("type"), geometry.get("coordinates", ())
    if kind == "Feature" and isinstance(geometry.get("geometry"), Mapping):
        return _rings_of(geometry["geometry"], name)
    if kind == "FeatureCollection":
        return [ring for part in geometry.get("features", ()) for ring in _rings_of(part, name)]
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"{name} must be made of a Polygon or MultiPolygon; got a {kind}.")
    polygons = [corners] if kind == "Polygon" else corners
    return [np.asarray(ring, dtype=float) for polygon in polygons for ring in polygon]


def _made_of(rings: list[Array], name: str) -> Window:
    for ring in rings:
        if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
            raise ValueError(
                f"{name} must be made of rings of at least three finite corners (x, y); one has "
                f"the shape {ring.shape}."
            )
        if not _has_area(ring):
            raise ValueError(
                f"{name} has no area: the corners of a ring are on one line, or its edges cross "
                f"and what is left of them is as large as what is right. Give the corners in the "
                f"order in which one walks around."
            )
    if not rings:
        raise ValueError(f"{name} has no area: it has no rings.")
    return Window(Polygons(rings))


def _has_area(ring: Array) -> bool:
    x, y = (ring - ring.mean(axis=0)).T
    twice = abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    return twice > 1e-12 * float(np.ptp(x) * np.ptp(y))


# -- features that go round ------------------------------------------------------------------------


def check_periodic(name: str, periodic: Any) -> None:
    """Refuse what is neither None nor a list of features."""
    given = () if periodic is None else periodic
    if isinstance(given, str) or not np.iterable(given) or not all(map(is_integer, given)):
        raise ValueError(
            f"{name} must be a list of the features that go round, by their numbers from 0, or "
            f"None; got {periodic!r}."
        )


def goes_round(periodic: Any, features: int) -> NDArray[np.bool_]:
    """Return which features do."""
    given = [int(j) for j in (() if periodic is None else periodic)]
    if not all(0 <= j < features for j in given):
        raise ValueError(
            f"periodic={periodic!r} names a feature that is not there; X has {features}, which "
            f"are numbered from 0."
        )
    round_and_round = np.zeros(features, dtype=bool)
    round_and_round[given] = True
    return round_and_round


def folded(X: Array, domain: Array, periodic: NDArray[np.bool_]) -> Array:
    """Return points with the features that go round within the domain."""
    if not periodic.any():
        return X
    low, width = domain[:, 0], domain[:, 1] - domain[:, 0]
    return np.where(periodic, low + np.mod(X - low, width), X)


def pieces(box: Array, domain: Array, periodic: NDArray[np.bool_]) -> list[Array]:
    """Return the boxes in the domain that a box is, where it goes over the end of a period.

    One that is longer than a period is all of it, once.
    """
    along = []
    for (start, end), (low, high), goes in zip(box, domain, periodic, strict=True):
        if not goes:
            along.append([(start, end)])
            continue
        if end - start >= high - low:
            along.append([(low, high)])
            continue
        begin = low + np.mod(start - low, high - low)
        over = begin + (end - start) - high
        along.append([(begin, min(high + over, high))] + ([(low, low + over)] if over > 0 else []))
    return [np.array(part) for part in product(*along)]
