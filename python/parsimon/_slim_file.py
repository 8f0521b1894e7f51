"""Model files that predict and do nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core

# What the algorithms keep that solve for weights, average iterates, or remember what they did.
_OF_TRAINING = (
    *("newton.numbers", "newton.pending", "newton.points", "statistics", "noise"),
    *("average.", "scout", "drift", "primal."),
)
# The state of a Gram factor that is not there: it is built anew by whoever needs one.
_NO_FACTOR: dict[str, Any] = {
    "factor.size": 0,
    "factor": np.empty(0),
    "factor.diagonal": np.empty(0),
    "factor.changes": 0,
    "factor.probes": 0,
}


def without_training(archive: _core.Archive) -> _core.Archive:
    """Return the entries of a core's model without those that only training needs."""
    entries = {name: archive[name] for name in archive.keys()}  # noqa: SIM118 - it is no dict
    slim = {
        name: value
        for name, value in entries.items()
        if name != "newton" and not name.startswith(_OF_TRAINING)
    }
    for name, value in list(slim.items()):
        if name.startswith("trace"):
            slim[name] = value[:0]
        if name.endswith(".stride"):
            del slim[name]
    if "factor" in slim and "average" in slim:
        # The weights that predict are the last ones. An average of iterates has its scale already.
        if slim["average"] and "dual_averaging" in slim:
            slim["dual_averaging"] = 0
        slim["weights"] = np.ascontiguousarray(slim["weights"][:, -int(slim["outputs"]) :])
        slim |= {"average": 0, **_NO_FACTOR}
    if "tracker.weights" in slim:
        rows = ("weights", "dictionary", "dictionary.ids", "dictionary.protected")
        slim |= {f"tracker.{name}": slim[f"tracker.{name}"][:0] for name in rows}
        slim["tracker.dictionary.origin"] = np.empty(0)
        slim |= {f"tracker.{name}": value for name, value in _NO_FACTOR.items()}
    return _core.Archive(slim)
