"""scikit-learn's base classes; `_sklearn.pyi` has the types that they lack."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9
    CallbackSupportMixin = object

    def with_callbacks(method):
        """Leave the method as it is."""
        return method


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassifierMixin",
    "DensityMixin",
    "OutlierMixin",
    "RegressorMixin",
    "TransformerMixin",
    "with_callbacks",
]
