"""Pictures of fitted estimators, after scikit-learn's ``Display`` convention.

They need matplotlib: ``pip install 'parsimon[plot]'``.
"""

from ._decision_surface import DecisionSurfaceDisplay
from ._intensity import IntensityDisplay
from ._prequential import PrequentialDisplay
from ._prototypes import PrototypesDisplay, ShapleyDisplay
from ._sparsity_path import SparsityPathDisplay
from ._trace import TraceDisplay

__all__ = [
    "DecisionSurfaceDisplay",
    "IntensityDisplay",
    "PrequentialDisplay",
    "PrototypesDisplay",
    "ShapleyDisplay",
    "SparsityPathDisplay",
    "TraceDisplay",
]
