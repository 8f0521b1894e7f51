"""Functions in integers: points and weights of 16 bits, and a table for the exponential."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsimon._formula import Formula, Scaling
from parsimon.kernels import Gaussian, Kernel, Laplacian, Scaled

from ._c_kernels import numbers

Array = NDArray[np.float64]

_LARGEST = 32767
# How many lengths beyond the points samples are told apart: the kernel is below 1e-5 there.
_MARGIN = {Gaussian: 5.0, Laplacian: 12.0}
# What the argument of the exponential can be before it is 0: exp(-17) is less than 2^-24.
_REACH = 17.0
_ENTRIES = 1024


def int16_code(formula: Formula, name: str) -> str:
    """Return the function ``NAME_values`` and its tables."""
    factor, kernel = _single(formula.kernel)
    features = formula.n_features
    lengths: Array = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=np.float64), (features,))
    points = formula.dictionary / lengths
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    reach = float(np.abs(points - middle).max()) + _MARGIN[type(kernel)]
    unit = _LARGEST / reach  # integers to a length
    scaling = formula.scaling or Scaling(np.zeros(features), np.ones(features))
    to_integers = scaling.then(Scaling(middle * lengths, unit / lengths))

    squared = isinstance(kernel, Gaussian)
    # The exponent is distance * slope; an entry of the table for every 2^shift of the distance.
    slope = 0.5 / unit**2 if squared else 1 / unit
    shift = max(int(np.ceil(np.log2(_REACH / slope / _ENTRIES))), 0)
    entries = int(np.ceil(_REACH / slope / 2**shift)) + 2
    table = np.round(np.exp(-slope * 2.0**shift * np.arange(entries)) * 2**24)
    table[-2:] = 0

    weights = formula.weights * factor
    largest = np.abs(weights).max(axis=0)
    largest[largest == 0] = 1
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "POINTS": _integers(np.round((points - middle) * unit)),
        "WEIGHTS": _integers(np.round(weights / largest * _LARGEST)),
        "UNITS": numbers(largest / _LARGEST / 2**24, single=True),
        "INTERCEPT": numbers(formula.intercept, single=True),
        "MEAN": numbers(to_integers.mean, single=True),
        "FACTOR": numbers(to_integers.factor, single=True),
        "TABLE": _integers(table),
        "ENTRIES": str(entries),
        "SHIFT": str(shift),
        "SIZES": f"{points.size}",
        "MISSING": "if (scaled != scaled) scaled = 0;" if scaling.takes_missing else "",
        "COUNT": str(weights.size),
        "TERM": "(uint64_t)((int64_t)away * away)"
        if squared
        else "(uint64_t)(away < 0 ? -away : away)",
    }
    text = _CODE
    for word, meaning in words.items():
        text = text.replace(f"@{word}@", meaning)
    return text


def _single(kernel: Kernel) -> tuple[float, Gaussian | Laplacian]:
    """Return the one kernel that there is, and its factor."""
    if isinstance(kernel, Scaled):
        factor, inner = _single(kernel.kernel)
        return factor * kernel.scale, inner
    if isinstance(kernel, (Gaussian, Laplacian)):
        return 1.0, kernel
    raise ValueError(
        f"float_type='int16' has a table for the exponential of a distance, which the kernel "
        f"{kernel!r} is not: it is for a Gaussian or a Laplacian kernel, or a multiple of one. Use "
        f"float_type='float'."
    )


def _integers(values: Array) -> str:
    texts = [str(int(value)) for value in np.ravel(values)]
    return ",\n  ".join(", ".join(texts[i : i + 14]) for i in range(0, len(texts), 14))


_CODE = """static const int16_t @NAME@_points[@SIZES@] = {
  @POINTS@};
static const int16_t @NAME@_weights[@COUNT@] = {
  @WEIGHTS@};
static const float @NAME@_units[@UPPER@_OUTPUTS] = {
  @UNITS@};
static const float @NAME@_intercept[@UPPER@_OUTPUTS] = {
  @INTERCEPT@};
static const float @NAME@_mean[@UPPER@_FEATURES] = {
  @MEAN@};
static const float @NAME@_factor[@UPPER@_FEATURES] = {
  @FACTOR@};
/* exp(0), exp(-step), ... times 2^24 */
static const int32_t @NAME@_table[@ENTRIES@] = {
  @TABLE@};

/* A sample as integers: what a sensor without floating point would give. */
static inline void @NAME@_to_integers(const float *x, int16_t *integers)
{
  size_t j;
  for (j = 0; j < @UPPER@_FEATURES; ++j) {
    float scaled = (x[j] - @NAME@_mean[j]) * @NAME@_factor[j];
    @MISSING@
    if (scaled > 32767.0f) scaled = 32767.0f;
    if (scaled < -32767.0f) scaled = -32767.0f;
    integers[j] = (int16_t)(scaled < 0 ? scaled - 0.5f : scaled + 0.5f);
  }
}

/* The outputs in integers: the values are @NAME@_units times them, with the intercept added. */
static inline void @NAME@_integer_values(const int16_t *x, int64_t *values)
{
  size_t i, j;
  for (j = 0; j < @UPPER@_OUTPUTS; ++j) values[j] = 0;
  for (i = 0; i < @UPPER@_POINTS; ++i) {
    const int16_t *const p = @NAME@_points + i * @UPPER@_FEATURES;
    const int16_t *const w = @NAME@_weights + i * @UPPER@_OUTPUTS;
    uint64_t distance = 0, entry;
    int64_t k, part;
    for (j = 0; j < @UPPER@_FEATURES; ++j) {
      const int32_t away = (int32_t)p[j] - (int32_t)x[j];
      distance += @TERM@;
    }
    entry = distance >> @SHIFT@;
    if (entry >= @ENTRIES@ - 1) continue;
    part = (int64_t)(distance - (entry << @SHIFT@));
    k = @NAME@_table[entry];
    part *= @NAME@_table[entry + 1] - @NAME@_table[entry];
    k += part / ((int64_t)1 << @SHIFT@);
    for (j = 0; j < @UPPER@_OUTPUTS; ++j) values[j] += w[j] * k;
  }
}

/* The outputs of the function, @UPPER@_OUTPUTS numbers, for @UPPER@_FEATURES features. */
static inline void @NAME@_values(const float *sample, float *values)
{
  int16_t x[@UPPER@_FEATURES];
  int64_t sums[@UPPER@_OUTPUTS];
  size_t j;
  @NAME@_to_integers(sample, x);
  @NAME@_integer_values(x, sums);
  for (j = 0; j < @UPPER@_OUTPUTS; ++j) {
    values[j] = (float)sums[j] * @NAME@_units[j] + @NAME@_intercept[j];
  }
}
"""
