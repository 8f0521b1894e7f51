"""
A world that changes
====================

Half way along this stream the two classes change places. By default a model watches its own
losses: it forgets nothing while they are what it expects, and the past quickly once they are not.
With ``half_life=None`` it never forgets, and takes long to believe the change.
"""

from sklearn.datasets import make_moons

from parsimon import POLKClassifier
from parsimon.stream import PrequentialDisplay, in_blocks, prequential

X, y = make_moons(20_000, noise=0.2, random_state=0)
y[10_000:] = 1 - y[10_000:]

results = {
    f"half_life={half_life!r}": prequential(
        POLKClassifier(half_life=half_life, random_state=0), in_blocks(X, y, rows=100), window=500
    )
    for half_life in ("auto", None)
}
PrequentialDisplay(results).plot()
