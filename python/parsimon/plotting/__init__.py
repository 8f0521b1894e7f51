"""Pictures of fitted estimators, after scikit-learn's ``Display`` convention.

They need matplotlib: ``pip install 'parsimon[plot]'``.
"""

from ._decision_surface import DecisionSurfaceDisplay
from ._intensity import IntensityDisplay
from ._trace import TraceDisplay

__all__ = ["DecisionSurfaceDisplay", "IntensityDisplay", "TraceDisplay"]
