"""
Where things happen in a city
=============================

Places in a window with a lake: an intensity that is positive everywhere, integrates to the number
of events, and does not leak over the shore.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.path import Path

from parsimon import SPPPOTIntensity
from parsimon.plotting import IntensityDisplay

random = np.random.default_rng(0)
shore = np.array([[0, 0], [0.75, 0], [0.6, 0.35], [0.7, 0.6], [0.5, 1], [0, 1]])
streets = np.concatenate(
    [
        random.normal((0.5, 0.4), (0.05, 0.12), (1200, 2)),
        random.normal((0.2, 0.7), (0.12, 0.05), (700, 2)),
        random.uniform(0, 1, (900, 2)),
    ]
)
places = streets[Path(shore).contains_points(streets)]

model = SPPPOTIntensity(domain=[(0, 0.8), (0, 1)], window=shore, random_state=0).fit(places)
figure, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
IntensityDisplay.from_estimator(model, places[::4], ax=ax)
figure.suptitle(f"{len(places):,} events, {model.model_order_} points")
plt.show()
