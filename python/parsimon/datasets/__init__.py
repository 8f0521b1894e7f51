"""Data sets of the papers: generators, and loaders for real data.

A loader first looks for a file in the folder that the environment variable ``PARSIMON_DATA`` names.
If it is not there, the data are fetched from OpenML, where OpenML has them, and kept in
scikit-learn's cache (``data_home``).

=======================  =======================================================  =============
file                     arrays in it                                             OpenML
=======================  =======================================================  =============
mnist.npz                X_train, y_train, X_test, y_test; pixels 0 to 255        data_id=554
usps.npz                 X_train, y_train, X_test, y_test; pixels -1 to 1         data_id=41082
abalone.npz              X (sex one-hot as M, F, I; then 7 measures), y (rings)   data_id=183
boston.npz               X (13 columns), y (medv)                                 data_id=531
lidar.npz                X (range), y (logratio)                                  no
curry_shots.npz          dist_ft (feet), season_end_year; one entry per shot      no
chicago_crimes_2018.npz  x (longitude, latitude)                                  no
=======================  =======================================================  =============
"""

from ._documents import make_documents
from ._generators import (
    make_multidist,
    make_poisson_gaussian,
    make_regression_outliers,
    make_sinc,
)
from ._loaders import (
    load_abalone,
    load_boston,
    load_chicago_crimes,
    load_curry_shots,
    load_lidar,
    load_mnist,
    load_usps,
)
from ._mixed import make_deliveries

__all__ = [
    "load_abalone",
    "load_boston",
    "load_chicago_crimes",
    "load_curry_shots",
    "load_lidar",
    "load_mnist",
    "load_usps",
    "make_deliveries",
    "make_documents",
    "make_multidist",
    "make_poisson_gaussian",
    "make_regression_outliers",
    "make_sinc",
]
