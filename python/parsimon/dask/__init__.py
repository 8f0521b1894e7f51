"""Estimators that learn from collections of Dask, on many machines: the model that one would learn.

Needs Dask with its distributed scheduler: ``pip install 'parsimon[dask]'``.
"""

from ._estimators import COLKRegressor, POLKClassifier, POLKRegressor, SPPPOTIntensity

__all__ = ["COLKRegressor", "POLKClassifier", "POLKRegressor", "SPPPOTIntensity"]
