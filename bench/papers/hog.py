"""Histograms of oriented gradients at several scales, as Maji and Malik made them for digits."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.utils import gen_batches

Array = NDArray[np.float64]

ORIENTATIONS = 12
# Sides of the cells, in pixels; cells overlap by half.
CELLS = (14, 7, 4)
_SIDE = 28
_BLOCK = 2000


def features(images: Array) -> Array:
    """Return the histograms of images of shape (n, 28, 28) or (n, 784), each of norm 1.

    A gradient votes for the two nearest of 12 signed orientations in every cell of 14, 7 and 4
    pixels that contains it, cells half a side apart, with a weight of its magnitude. The histograms
    of a scale are divided by their norm, those of finer scales count for more.
    """
    return np.concatenate([_features(images[part]) for part in gen_batches(len(images), _BLOCK)])


def _features(images: Array) -> Array:
    votes = _votes(np.asarray(images, dtype=np.float64).reshape(-1, _SIDE, _SIDE))
    scales = []
    for cell in CELLS:
        # Sums over all cells of this side, half a side apart.
        apart = max(1, cell // 2)
        cells = sliding_window_view(votes, (cell, cell), axis=(2, 3))[:, :, ::apart, ::apart]
        histograms = cells.sum(axis=(4, 5)).reshape(len(votes), -1)
        norms = np.linalg.norm(histograms, axis=1, keepdims=True)
        scales.append(histograms / np.maximum(norms, 1e-12) / np.sqrt(cell))
    joined = np.concatenate(scales, axis=1)
    return np.asarray(joined / np.maximum(np.linalg.norm(joined, axis=1, keepdims=True), 1e-12))


def _votes(images: Array) -> Array:
    """Magnitudes of the gradients by orientation, of shape (n, orientations, 28, 28)."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    dx = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    dy = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    magnitude = np.hypot(dx, dy)
    angle = np.mod(np.arctan2(dy, dx) / (2 * np.pi), 1.0) * ORIENTATIONS
    low = np.floor(angle).astype(int) % ORIENTATIONS
    share = angle - np.floor(angle)
    votes = np.zeros((len(images), ORIENTATIONS, _SIDE, _SIDE))
    n, row, column = np.ogrid[: len(images), :_SIDE, :_SIDE]
    votes[n, low, row, column] += magnitude * (1 - share)
    votes[n, (low + 1) % ORIENTATIONS, row, column] += magnitude * share
    return votes
