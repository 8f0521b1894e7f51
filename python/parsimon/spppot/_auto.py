"""What the user of an intensity estimator left open, chosen from the data; see docs/defaults.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from parsimon import kernels
from parsimon._checks import is_integer, is_number
from parsimon._core import Quadrature

Array = NDArray[np.float64]

# Kernels whose width is a length: a density needs one that fades with the distance.
KERNELS: dict[str, Any] = {
    "rbf": kernels.Gaussian,
    "gaussian": kernels.Gaussian,
    "laplacian": kernels.Laplacian,
    "matern": kernels.Matern,
    "cauchy": kernels.Cauchy,
    "student_t": kernels.StudentT,
}

# A domain that is left to us ends where, beyond the data, fewer than one in a hundred samples like
# these would have one: that many mean gaps between the largest of them. Of the data's range at
# most.
_TAIL = 10
_MARGIN_GAPS = float(_TAIL * np.log(100) / np.log(_TAIL))
_MOST_MARGIN = 0.2
# Samples below which there are too few to choose anything by cross-validation.
ENOUGH = 10
# Of a domain. A density may be much larger and smaller than the uniform one.
_SMALLEST_VOLUME = 1e-200
# Nodes of a grid that is left to us, at most: with cells half as wide as the kernel, and as wide as
# it. Beyond, they are scattered.
_MOST_FINE_NODES = 256
_MOST_NODES = 1024
_FEWEST_CELLS = 10
# Bandwidth that is left to us, at least, in units of the distance of that many nodes; one feature
# is covered in any case.
_LEAST_REACH = 1.5
# Bytes that the kernel matrices of a grid may take: about three of nodes x nodes doubles.
_MOST_BYTES = 4 << 30
# Samples and nodes on which the largest eigenvalue is computed.
_SUBSAMPLE = 500
# Features up to which integrals are products over them.
MOST_GRID_FEATURES = 3


def check_domain(name: str, domain: Any) -> Array | None:
    """Return the bounds, one row per feature, or None for "auto"; refuse what is neither."""
    if isinstance(domain, str) and domain == "auto":
        return None
    try:
        bounds = np.asarray(domain, dtype=np.float64)
    except (TypeError, ValueError):
        bounds = np.empty(0)
    if bounds.shape == (2,):
        bounds = bounds[None]
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
        auto = "'auto', or " if name == "domain" else ""
        raise ValueError(
            f"{name} must be {auto}a pair (low, high) for each feature; got {domain!r}."
        )
    if not np.isfinite(bounds).all() or not (bounds[:, 0] < bounds[:, 1]).all():
        raise ValueError(
            f"{name} must have finite bounds, low below high along each feature, or it has no "
            f"volume; got {domain!r}."
        )
    return bounds


def choose_domain(domain: Any, X: Array, around: Array | None = None) -> Array:
    """Return the bounds for these data, of a volume whose inverse is a number, too.

    around: of the window, if it is known.
    """
    is_ours = isinstance(domain, str) and around is not None
    bounds = around if is_ours and around is not None else _bounds_for(domain, X)
    with np.errstate(over="ignore"):
        volume = float(np.prod(bounds[:, 1] - bounds[:, 0]))
    if not _SMALLEST_VOLUME <= volume <= 1 / _SMALLEST_VOLUME:
        raise ValueError(
            f"The domain has a volume of {volume:.3g}, where densities leave the range of a "
            f"double; scale the features."
        )
    return bounds


def _bounds_for(domain: Any, X: Array) -> Array:
    bounds = check_domain("domain", domain)
    if bounds is not None:
        if len(bounds) != X.shape[1]:
            raise ValueError(
                f"domain has {len(bounds)} pairs (low, high), but X has {X.shape[1]} features."
            )
        return bounds
    low, high = X.min(axis=0), X.max(axis=0)
    flat = np.flatnonzero(~(high > low))
    if len(flat):
        raise ValueError(
            f"All {len(X)} samples (n_samples={len(X)}) have the same value along feature "
            f"{flat[0]}, so that domain='auto' has no width there; give the domain."
        )
    bounds = np.column_stack([low - _margin(X), high + _margin(-X)])
    if not np.isfinite(bounds).all():
        raise ValueError("The samples reach to the limits of a double; scale the features.")
    return bounds


def _margin(X: Array) -> Array:
    """Return how far below the smallest values there may be more.

    Gaps between the smallest values tell an edge, where they are tiny, from a tail: of exponential
    ones the k smallest span log k mean gaps, and the next sample of as many is log 100 of them
    further out in one case of a hundred.
    """
    tail = min(_TAIL, len(X) - 1)
    smallest = np.partition(X, tail, axis=0)[: tail + 1]
    # Halves, so that the widest data there can be have a finite range.
    span = 2 * (smallest.max(axis=0) / 2 - smallest.min(axis=0) / 2)
    most = 2 * _MOST_MARGIN * (X.max(axis=0) / 2 - X.min(axis=0) / 2)
    # Values that are rounded have no gaps: never less than a hundredth of the range.
    return np.asarray(np.clip(_MARGIN_GAPS * span / tail, most / 20, most))


def check_bandwidth(name: str, bandwidth: Any) -> None:
    """Refuse what is neither a positive number, nor one for each feature, nor a rule's name."""
    if isinstance(bandwidth, str):
        if bandwidth not in ("auto", "silverman"):
            raise ValueError(
                f"{name} must be a positive number, one for each feature, 'auto' or 'silverman'; "
                f"got {bandwidth!r}."
            )
        return
    kernels.Gaussian(bandwidth)


def choose_bandwidth(bandwidth: Any, X: Array, domain: Array) -> float | list[float]:
    """Return one length for all features, or one for each."""
    if not isinstance(bandwidth, str):
        return float(bandwidth) if is_number(bandwidth) else [float(h) for h in bandwidth]
    features, width = X.shape[1], domain[:, 1] - domain[:, 0]
    # Between nodes that are further apart than the kernel reaches, nothing bounds the density.
    least = 1 / 1000 if features == 1 else _LEAST_REACH / _MOST_NODES ** (1 / features)
    return [float(h) for h in np.maximum(silverman(X, domain), least * width)]


def silverman(X: Array, domain: Array) -> Array:
    """Return Silverman's length for each feature."""
    size, features = X.shape
    quartiles = np.percentile(X, [25, 75], axis=0)
    robust = (quartiles[1] - quartiles[0]) / 1.34
    deviation = X.std(axis=0)
    scale = np.where(robust > 0, np.minimum(robust, deviation), deviation)
    # As many samples as are at one place tell nothing; neither do less than a hundredth of it.
    width = domain[:, 1] - domain[:, 0]
    scale = np.where(scale > 0, scale, width / 4)
    factor = (4 / ((features + 2) * size)) ** (1 / (features + 4))
    return np.asarray(np.maximum(scale * factor, width / 1000))


def check_scales(name: str, scales: Any) -> None:
    """Refuse what is neither 1 nor 2 nor "auto"."""
    if not (is_integer(scales) and scales in (1, 2)) and not (
        isinstance(scales, str) and scales == "auto"
    ):
        raise ValueError(f"{name} must be 1, 2 or 'auto'; got {scales!r}.")


def check_kernel(name: str, kernel: Any) -> None:
    """Refuse what is neither a kernel nor the name of one that fades with the distance."""
    if isinstance(kernel, kernels.Kernel) or (isinstance(kernel, str) and kernel in KERNELS):
        return
    raise ValueError(
        f"{name} must be a parsimon.kernels.Kernel or one of {', '.join(map(repr, KERNELS))}; got "
        f"{kernel!r}."
    )


def check_grid_size(name: str, grid_size: Any) -> list[int] | None:
    """Return the cells along each feature, one number for all, or None for "auto"."""
    if isinstance(grid_size, str) and grid_size == "auto":
        return None
    given = [grid_size] if np.ndim(grid_size) == 0 else list(grid_size)
    if not given or not all(is_integer(n) and n >= 1 for n in given):
        raise ValueError(
            f"{name} must be a positive integer, one for each feature, or 'auto'; got "
            f"{grid_size!r}."
        )
    return [int(n) for n in given]


def choose_quadrature(grid_size: Any, domain: Array, bandwidth: Any) -> Quadrature:
    """Return the nodes of the integral: a grid, or scattered where a grid would be too large."""
    counts = check_grid_size("grid_size", grid_size)
    features = len(domain)
    if counts is not None:
        return Quadrature.grid(_check_memory(grid_counts(counts, features), grid_size))
    lengths = np.broadcast_to(np.asarray(bandwidth, dtype=float), features)
    fine = np.maximum(np.ceil(2 * (domain[:, 1] - domain[:, 0]) / lengths), _FEWEST_CELLS)
    coarse = np.maximum(np.ceil(fine / 2), _FEWEST_CELLS)
    for cells, most in ((fine, _MOST_FINE_NODES), (coarse, _MOST_NODES)):
        if np.log(cells).sum() <= np.log(most):
            return Quadrature.grid([int(n) for n in cells])
    # One feature can always be covered; more than a few cannot.
    if features == 1:
        return Quadrature.grid([_MOST_NODES])
    return Quadrature.scattered(_MOST_NODES)


def grid_counts(counts: list[int], features: int) -> list[int]:
    """Return one number of cells for each feature."""
    if len(counts) not in (1, features):
        raise ValueError(
            f"grid_size has {len(counts)} numbers, but X has {features} features; give one for "
            f"all, or one for each."
        )
    return counts * features if len(counts) == 1 else counts


def cells_for(model: Any, width: Array, domain_width: Array) -> list[int] | None:
    """Return the cells of an integral over a box of this width; None where nodes are scattered."""
    if len(width) > MOST_GRID_FEATURES:
        return None
    lengths = getattr(
        kernels.from_description(model.expansion.kernel.describe()), "bandwidth", None
    )
    cells = np.zeros(len(width))
    if lengths is not None:
        cells = 2 * width / np.asarray(lengths, dtype=float)
    if model.quadrature.kind == "grid":
        cells = np.maximum(cells, width / domain_width * model.quadrature.counts)
    elif lengths is None:
        cells = np.maximum(cells, width / domain_width * 64)
    return [int(n) for n in np.clip(np.ceil(cells), 1, 1 << 20)]


def _check_memory(counts: list[int], grid_size: Any) -> list[int]:
    features = len(counts)
    nodes = float(np.prod([float(n) for n in counts]))
    bytes_needed = 3 * 8 * nodes**2
    if bytes_needed > _MOST_BYTES:
        most = int(np.sqrt(_MOST_BYTES / 24) ** (1 / features))
        raise ValueError(
            f"grid_size={grid_size!r} makes a grid of {nodes:.3g} nodes in {features} dimensions, "
            f"whose kernel matrices would take {bytes_needed / 2**30:.3g} GB; choose at most "
            f"{most} cells along each feature, or grid_size='auto'."
        )
    return counts


@dataclass(frozen=True)
class Curvature:
    """How steep the likelihood can be, which bounds the steps."""

    data: float  # largest eigenvalue of the kernel on the data, over their number
    nodes: float  # the same on the nodes of the integral
    features: float  # mean of |k_D(x)|^2 over the data, D the nodes


def curvature(kernel: kernels.Kernel, X: Array, nodes: Array) -> Curvature:
    """Measure it on a part of the data and of the nodes."""
    sample = _subsample(X)
    few = _subsample(nodes)
    squares = float((kernel(sample, few) ** 2).sum(axis=1).mean()) * len(nodes) / len(few)
    return Curvature(_top(kernel(sample)), _top(kernel(few)), squares)


def _top(gram: Array) -> float:
    size = len(gram)
    if not np.isfinite(gram).all():
        raise ValueError("The kernel is not finite on these samples; choose another one.")
    top = linalg.eigh(gram, eigvals_only=True, subset_by_index=[size - 1, size - 1])[0]
    return float(top) / size


def _subsample(X: Array) -> Array:
    if len(X) <= _SUBSAMPLE:
        return X
    # Always the same ones: the choice must not depend on random_state.
    rows = np.sort(np.random.RandomState(0).permutation(len(X))[:_SUBSAMPLE])
    return np.asarray(X[rows])


def epochs(given: int | str, size: int, samples: int, most: int) -> int:
    """Return the passes over the data that fit makes: this many samples in all, within bounds."""
    if not isinstance(given, str):
        return int(given)
    return int(np.clip(np.ceil(samples / size), 8, most))
