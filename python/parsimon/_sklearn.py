"""scikit-learn's base classes; `_sklearn.pyi` has the types that they lack."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DensityMixin",
    "OutlierMixin",
    "RegressorMixin",
    "TransformerMixin",
]
