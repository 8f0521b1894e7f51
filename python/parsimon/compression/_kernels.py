"""Kernels of scikit-learn as ours."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from parsimon import kernels
from parsimon.kernels import Kernel


def by_name(model: Any, gamma: Any) -> Kernel:
    """Return the kernel of a model that names it."""
    name = model.kernel
    if name == "precomputed":
        raise ValueError(
            f"The {type(model).__name__} was fitted with kernel='precomputed', so the samples that "
            f"its function is made of are unknown. Fit it with the kernel itself, or give "
            f"parsimon.KernelExpansion(kernel, samples, weights)."
        )
    if callable(name):
        if not hasattr(model, "kernel_params"):
            return kernels.Function(name)
        # A KernelRidge calls it with two samples, others with all of them.
        given = model.kernel_params or {}
        return kernels.Function(partial(pairwise_kernels, metric=name, **given))
    if name in ("rbf", "poly", "polynomial", "linear", "laplacian"):
        return kernels.from_name(name, gamma=float(gamma), degree=model.degree, coef0=model.coef0)
    raise ValueError(
        f"The kernel {name!r} of the {type(model).__name__} is none of ours: 'rbf', 'poly', "
        f"'linear', 'laplacian' and functions can be compressed; 'sigmoid' is not positive "
        f"definite."
    )


def has_gradient(kernel: Kernel) -> bool:
    """Return whether points can be moved along the slope of a kernel."""
    if isinstance(kernel, kernels.Function):
        return False
    inner = [kernel.kernel] if hasattr(kernel, "kernel") else getattr(kernel, "parts", ())
    return all(map(has_gradient, inner))


def of_process(kernel: Any) -> tuple[Kernel | None, float]:
    """Return the kernel of a Gaussian process, and the variance of the white noise beside it."""
    kind = type(kernel).__name__
    if kind == "Sum":
        (a, noise_a), (b, noise_b) = of_process(kernel.k1), of_process(kernel.k2)
        both = b if a is None else a if b is None else a + b
        return both, noise_a + noise_b
    if kind == "WhiteKernel":
        return None, float(kernel.noise_level)
    if kind == "Product":
        (a, noise_a), (b, noise_b) = of_process(kernel.k1), of_process(kernel.k2)
        if noise_a or noise_b or a is None or b is None:
            raise ValueError("A product with a WhiteKernel is none of our kernels.")
        return _product(a, b), 0.0
    if kind == "ConstantKernel":
        return float(kernel.constant_value) * kernels.Constant(), 0.0
    return _elementary(kernel, kind), 0.0


def _product(a: Kernel, b: Kernel) -> Kernel:
    """Return a product; one with a constant is a multiple."""
    for factor, other in ((a, b), (b, a)):
        if isinstance(factor, kernels.Scaled) and isinstance(factor.kernel, kernels.Constant):
            return factor.scale * other
    return a * b


def _elementary(kernel: Any, kind: str) -> Kernel:
    if kind == "RBF":
        return kernels.Gaussian(_length(kernel))
    if kind == "Matern" and kernel.nu in (0.5, 1.5, 2.5):
        return kernels.Matern(_length(kernel), nu=float(kernel.nu))
    if kind == "Matern" and kernel.nu == math.inf:
        return kernels.Gaussian(_length(kernel))
    if kind == "RationalQuadratic" and kernel.alpha > 0.5:
        degrees = 2 * float(kernel.alpha) - 1
        length = float(kernel.length_scale) * math.sqrt(2 * kernel.alpha / degrees)
        return kernels.StudentT(length, degrees)
    if kind == "DotProduct":
        linear: Kernel = kernels.Linear()
        offset = float(kernel.sigma_0) ** 2
        return linear + offset * kernels.Constant() if offset else linear
    if kind == "Exponentiation" and kernel.exponent == int(kernel.exponent) > 0:
        inner, noise = of_process(kernel.kernel)
        if inner is not None and not noise:
            return kernels.Product((inner,) * int(kernel.exponent))
    raise ValueError(
        f"The kernel {kernel} is none of ours: RBF, Matern with nu of 0.5, 1.5 or 2.5, "
        f"RationalQuadratic with alpha above 0.5, DotProduct, their sums, products, multiples and "
        f"powers, and a WhiteKernel beside them can be compressed."
    )


def _length(kernel: Any) -> Any:
    length = np.asarray(kernel.length_scale, dtype=float)
    return float(length) if length.ndim == 0 else length.tolist()
