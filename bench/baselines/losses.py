"""The multi-class losses of POLK's paper, for the batch methods and to judge every method.

Each takes scores of shape (n_samples, n_classes) and the index of each sample's class, and returns
the loss of every sample and its derivative with respect to the scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Weight of lambda ||f||^2 in the objective: (26) and (28) of the paper.
PENALTY = {"hinge": 1.0, "logistic": 0.5}


def hinge(scores: Array, y: Labels) -> tuple[Array, Array]:
    """Return max(0, 1 + f_r - f_y), r the best wrong class, and a subgradient."""
    rows = np.arange(len(y))
    wrong = scores.copy()
    wrong[rows, y] = -np.inf
    best = wrong.argmax(axis=1)
    losses = np.maximum(0.0, 1.0 + scores[rows, best] - scores[rows, y])
    slopes = np.zeros_like(scores)
    active = losses > 0
    slopes[rows[active], best[active]] = 1.0
    slopes[rows[active], y[active]] = -1.0
    return losses, slopes


def logistic(scores: Array, y: Labels) -> tuple[Array, Array]:
    """Return -log of the softmax at y, and softmax - one-hot."""
    rows = np.arange(len(y))
    total = logsumexp(scores, axis=1)
    slopes = np.exp(scores - total[:, None])
    losses = total - scores[rows, y]
    slopes[rows, y] -= 1.0
    return losses, slopes


def smoothed_hinge(scores: Array, y: Labels, temperature: float) -> tuple[Array, Array]:
    """Return s log(1 + sum over wrong c of exp((1 + f_c - f_y) / s)), s the temperature.

    Differentiable, and above the hinge loss by s log C at most.
    """
    rows = np.arange(len(y))
    # The sample's own class stands for the 0 in max(0, .).
    margins = (1.0 + scores - scores[rows, y][:, None]) / temperature
    margins[rows, y] = 0.0
    total = logsumexp(margins, axis=1)
    slopes = np.exp(margins - total[:, None])
    slopes[rows, y] -= 1.0
    return temperature * total, slopes


LOSSES = {"hinge": hinge, "logistic": logistic}
