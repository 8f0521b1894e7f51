"""Kernels: how alike two points are.

Kernels are immutable values: they compare, hash, copy and pickle by what they are, and print as
the expression that makes them. Add and multiply them to make new ones, and call them for Gram
matrices.

>>> from parsimon.kernels import Gaussian, Linear
>>> kernel = Gaussian(0.5) + 2.0 * Linear()
>>> kernel
Gaussian(bandwidth=0.5) + 2.0 * Linear()
>>> kernel([[0.0, 1.0], [1.0, 1.0]])
array([[3.        , 2.13533528],
       [2.13533528, 5.        ]])
"""

from ._base import Kernel, Product, Scaled, SinglePrecision, Sum
from ._elementary import (
    Cauchy,
    Constant,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    StudentT,
)
from ._naming import from_description, from_name

__all__ = [
    "Cauchy",
    "Constant",
    "Function",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Product",
    "Scaled",
    "SinglePrecision",
    "StudentT",
    "Sum",
    "from_description",
    "from_name",
]

# Pickles name the public place, so that they outlive a move of the code.
for _name in __all__:
    globals()[_name].__module__ = __name__
