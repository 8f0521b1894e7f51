"""Where in a domain points can be: polygons or a function; and features that go round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._checks import is_integer

Array = NDArray[np.float64]

# Points of a cell, along each feature, that tell how much of it is inside, and cells up to which so
# many are asked.
_PARTS = ((4, 1 << 14), (2, 1 << 18))


class Window:
    """A part of a domain, by a function of points; rings: of polygons, if it is made of those."""

    def __init__(self, contains: Callable[[Array], Any], rings: list[Array] | None = None) -> None:
        self._contains = contains
        self.rings = rings

    def contains(self, X: Array) -> NDArray[np.bool_]:
        """Tell which points are inside."""
        if self.rings is not None:
            return even_odd(self.rings, X)
        inside = np.asarray(self._contains(X))
        if inside.shape != (len(X),) or inside.dtype != bool:
            raise ValueError(
                f"A window that is a function must return True or False for each of the {len(X)} "
                f"points it is given; it returned an array of {inside.dtype} of the shape "
                f"{inside.shape}."
            )
        return inside

    def bounds(self) -> Array | None:
        """Return the box around polygons; None: nobody knows."""
        if self.rings is None:
            return None
        every = np.concatenate(self.rings)
        return np.column_stack([every.min(axis=0), every.max(axis=0)])

    def shares(self, domain: Array, cells: Sequence[int]) -> Array:
        """Return how much of each cell of a domain is inside."""
        count = float(np.prod([float(n) for n in cells]))
        parts = next((parts for parts, most in _PARTS if count <= most), 1)
        axes = [
            low + (np.arange(n * parts) + 0.5) / (n * parts) * (high - low)
            for (low, high), n in zip(domain, cells, strict=True)
        ]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(domain))
        inside = self.contains(nodes).astype(float)
        shape = [size for n in cells for size in (n, parts)]
        along = tuple(range(1, 2 * len(domain), 2))
        return np.asarray(inside.reshape(shape).mean(axis=along).ravel())


def even_odd(rings: list[Array], X: Array) -> NDArray[np.bool_]:
    """Tell which points a ray from which crosses the rings an odd number of times."""
    inside = np.zeros(len(X), dtype=bool)
    x, y = X[:, 0], X[:, 1]
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            if y0 == y1:
                continue
            crosses = (y0 <= y) != (y1 <= y)
            inside ^= crosses & (x < x0 + (y - y0) * ((x1 - x0) / (y1 - y0)))
    return inside


def check_window(name: str, window: Any) -> None:
    """Refuse what is neither a function nor polygons."""
    window_of(window, name)


def window_of(window: Any, name: str = "window") -> Window | None:
    """Return the window that was given, or None."""
    if window is None:
        return None
    geometry = getattr(window, "__geo_interface__", window)
    if isinstance(geometry, Mapping):
        return _polygons(_rings_of(geometry, name), name)
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
    return _polygons(rings, name)


def _rings_of(geometry: Mapping[str, Any], name: str) -> list[Array]:
    kind, corners = geometry.get("type"), geometry.get("coordinates", ())
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"{name} must be a Polygon or MultiPolygon; got a {kind}.")
    polygons = [corners] if kind == "Polygon" else corners
    return [np.asarray(ring, dtype=float) for polygon in polygons for ring in polygon]


def _polygons(rings: list[Array], name: str) -> Window:
    for ring in rings:
        if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
            raise ValueError(
                f"{name} must be made of rings of at least three finite corners (x, y); one has "
                f"the shape {ring.shape}."
            )
        if not _area(ring) > 0:
            raise ValueError(f"{name} has no area: the corners of a ring are on one line.")
    if not rings:
        raise ValueError(f"{name} has no area: it has no rings.")
    return Window(lambda X: even_odd(rings, X), rings)


def _area(ring: Array) -> float:
    x, y = (ring - ring.mean(axis=0)).T
    size = float(np.ptp(x) * np.ptp(y))
    twice = abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    return twice / 2 if twice > 1e-12 * size else 0.0


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
