"""Textures as histograms of textons (Leung and Malik, 1999), for the Brodatz task of POLK's paper.

Every pixel is described by the responses of a bank of filters; k-means finds 256 typical ones, the
textons; a patch is described by how often each texton is the nearest to one of its pixels. The
paper gives the number of textons and the size of the patches. The bank is Leung and Malik's;
pictures have mean 0 and variance 1, filters mean 0 (but for the Gaussians) and absolute sum 1, as
is usual.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from sklearn.cluster import MiniBatchKMeans

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Leung and Malik's: a filter is 49 pixels wide.
RADIUS = 24
SCALES = tuple(2.0 ** (power / 2) for power in range(4))  # 1, 1.4, 2, 2.8
ORIENTATIONS = 6
ELONGATION = 3.0


@dataclass(frozen=True)
class Settings:
    """How textons are found, and how large a patch is."""

    textons: int = 256
    patch: int = 24
    pixels: int = 200_000  # on which k-means works, drawn from all pictures
    crop: int | None = None  # use only the first so many rows and columns of each picture
    seed: int = 0


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
                bank.append(envelope * derivative(v, scale, order))
    squared = across**2 + along**2
    for scale in (*SCALES, *(3 * scale for scale in SCALES)):
        laplacian = (squared - 2 * scale**2) * np.exp(-squared / (2 * scale**2))
        bank.append(laplacian)
    bank = [each - each.mean() for each in bank]
    bank += [np.exp(-squared / (2 * scale**2)) for scale in SCALES]
    return np.array([each / np.abs(each).sum() for each in bank])


def derivative(v: Array, scale: float, order: int) -> Array:
    """Return the first or second derivative of a Gaussian, up to a factor."""
    gaussian = np.exp(-(v**2) / (2 * scale**2))
    return -v * gaussian if order == 1 else (v**2 - scale**2) * gaussian


def responses(image: NDArray[np.uint8], bank: Array) -> NDArray[np.float32]:
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


def texton_maps(images: NDArray[np.uint8], settings: Settings) -> NDArray[np.uint16]:
    """Return the texton of every pixel, of the shape of the images."""
    images = images[:, : settings.crop, : settings.crop]
    bank, random = filter_bank(), np.random.default_rng(settings.seed)
    each = -(-settings.pixels // len(images))
    pixels = [random.choice(image.size, min(each, image.size), replace=False) for image in images]
    sample = np.concatenate(
        [responses(image, bank)[chosen] for image, chosen in zip(images, pixels, strict=True)]
    )
    means = MiniBatchKMeans(
        settings.textons, batch_size=4096, n_init=1, max_iter=30, random_state=settings.seed
    ).fit(sample)
    maps = np.empty(images.shape, dtype=np.uint16)
    for number, image in enumerate(images):
        maps[number] = means.predict(responses(image, bank)).reshape(image.shape)
    return maps


def cached_maps(
    images: NDArray[np.uint8], settings: Settings, folder: Path | None
) -> NDArray[np.uint16]:
    """Return `texton_maps`, from a file in the folder if it has them and to one if not."""
    if folder is None:
        return texton_maps(images, settings)
    key = hashlib.sha256(images.tobytes() + repr(sorted(asdict(settings).items())).encode())
    path = folder / f"textons-{key.hexdigest()[:16]}.npz"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, maps=texton_maps(images, settings))
        unfinished.replace(path)
    with np.load(path, allow_pickle=False) as content:
        return np.asarray(content["maps"])


def draw_patches(
    maps: NDArray[np.uint16], count: int, settings: Settings, seed: int
) -> tuple[Array, Labels]:
    """Draw patches at random, overlaps allowed: their histograms, of sum 1, and their pictures."""
    random = np.random.default_rng(seed)
    side = settings.patch
    y = random.integers(len(maps), size=count)
    rows = random.integers(maps.shape[1] - side + 1, size=count)
    columns = random.integers(maps.shape[2] - side + 1, size=count)
    X = np.empty((count, settings.textons))
    for index in range(count):
        patch = maps[
            y[index], rows[index] : rows[index] + side, columns[index] : columns[index] + side
        ]
        X[index] = np.bincount(patch.ravel(), minlength=settings.textons)
    return X / side**2, y
