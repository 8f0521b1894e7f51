"""Textures as histograms of textons (Leung and Malik, 1999), for the Brodatz task of POLK's paper.

Every pixel is described by the responses of a bank of filters; k-means finds 256 typical ones, the
textons; a patch is described by how often each texton is the nearest to one of its pixels. The
paper gives the number of textons and the size of the patches. The bank is Leung and Malik's;
pictures have mean 0 and variance 1, filters mean 0 (but for the Gaussians) and absolute sum 1, as
is usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from sklearn.cluster import MiniBatchKMeans

Array = NDArray[Any]

# Leung and Malik's: a filter is 49 pixels wide.
RADIUS = 24
SCALES = tuple(2.0 ** (power / 2) for power in range(4))  # 1, 1.4, 2, 2.8
ORIENTATIONS = 6
ELONGATION = 3.0


def filter_bank() -> Array:
    """Return Leung and Malik's 48 filters, of shape (48, 49, 49).

    First and second derivatives of elongated Gaussians at three scales and six orientations, eight
    Laplacians of Gaussians, four Gaussians.
    """
    axis = np.arange(-RADIUS, RADIUS + 1.0)
    across, along = np.meshgrid(axis, axis)
    bank = []
    for scale in SCALES[:3]:
        for order in (1, 2):
            for angle in np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS:
                u = np.cos(angle) * across + np.sin(angle) * along
                v = -np.sin(angle) * across + np.cos(angle) * along
                envelope = np.exp(-(u**2) / (2 * (ELONGATION * scale) ** 2))
                # The first or second derivative of a Gaussian, up to a factor.
                slope = -v if order == 1 else v**2 - scale**2
                bank.append(envelope * (slope * np.exp(-(v**2) / (2 * scale**2))))
    squared = across**2 + along**2
    for scale in (*SCALES, *(3 * scale for scale in SCALES)):
        laplacian = (squared - 2 * scale**2) * np.exp(-squared / (2 * scale**2))
        bank.append(laplacian)
    bank = [each - each.mean() for each in bank]
    bank += [np.exp(-squared / (2 * scale**2)) for scale in SCALES]
    return np.array([each / np.abs(each).sum() for each in bank])


def responses(image: Array, bank: Array) -> Array:
    """Return the responses at every pixel, of shape (n_pixels, n_filters); edges are mirrored."""
    picture = (image - image.mean()) / image.std()
    padded = np.pad(picture, RADIUS, mode="reflect")
    shape = [fft.next_fast_len(size + 2 * RADIUS, real=True) for size in padded.shape]
    spectrum = fft.rfft2(padded, shape)
    rows, columns = image.shape
    found = np.empty((rows * columns, len(bank)), dtype=np.float32)
    for index, each in enumerate(bank):
        answer = fft.irfft2(spectrum * fft.rfft2(each, shape), shape)
        inner = answer[2 * RADIUS : 2 * RADIUS + rows, 2 * RADIUS : 2 * RADIUS + columns]
        found[:, index] = inner.ravel()
    return found


def texton_maps(
    images: Array, *, crop: int | None = None, pixels: int = 200_000, textons: int = 256
) -> Array:
    """Return the texton of every pixel, of the shape of the images.

    Textons are found on so many pixels, drawn from all pictures, of each of which only the first
    rows and columns are used, if `crop` says how many.
    """
    images, seed = images[:, :crop, :crop], 0
    bank, random = filter_bank(), np.random.default_rng(seed)
    each = -(-pixels // len(images))
    drawn = [random.choice(image.size, min(each, image.size), replace=False) for image in images]
    sample = np.concatenate(
        [responses(image, bank)[chosen] for image, chosen in zip(images, drawn, strict=True)]
    )
    means = MiniBatchKMeans(textons, batch_size=4096, n_init=1, max_iter=30, random_state=seed)
    means.fit(sample)
    maps = np.empty(images.shape, dtype=np.uint16)
    for number, image in enumerate(images):
        maps[number] = means.predict(responses(image, bank)).reshape(image.shape)
    return maps


def draw_patches(
    maps: Array, count: int, seed: int, *, side: int = 24, textons: int = 256
) -> tuple[Array, Array]:
    """Draw patches at random, overlaps allowed: their histograms, of sum 1, and their pictures."""
    random = np.random.default_rng(seed)
    y = random.integers(len(maps), size=count)
    rows = random.integers(maps.shape[1] - side + 1, size=count)
    columns = random.integers(maps.shape[2] - side + 1, size=count)
    X = np.empty((count, textons))
    for index, (row, column) in enumerate(zip(rows, columns, strict=True)):
        patch = maps[y[index], row : row + side, column : column + side]
        X[index] = np.bincount(patch.ravel(), minlength=textons)
    return X / side**2, y
