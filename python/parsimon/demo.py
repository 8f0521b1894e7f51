"""``python -m parsimon.demo``: a classifier learns from a stream, beside scikit-learn's SVC.

The task and the settings are those of the POLK paper (section 5, "multidist").
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.svm import SVC

from . import kernels
from ._progress import progress
from .datasets import make_multidist
from .polk import POLKClassifier

N_CLASSES = 5
BLOCK = 320
VARIANCE = 0.6  # of the Gaussian kernel, for both models


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    test_error: float
    points: int
    training_seconds: float
    prediction_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m parsimon.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo.png"), help="the picture")
    parser.add_argument("--samples", type=int, default=5000, help="length of the stream")
    parser.add_argument("--test-samples", type=int, default=5000, help="samples to test with")
    parser.add_argument("--seed", type=int, default=0, help="which draw of the task")
    options = parser.parse_args(arguments)
    for name in ("samples", "test_samples"):
        if getattr(options, name) < 100:
            parser.error(f"--{name.replace('_', '-')} must be at least 100.")

    X, y = make_multidist(options.samples + options.test_samples, random_state=options.seed)
    train, test = slice(options.samples), slice(options.samples, None)
    print(f"A stream of {options.samples:,} samples of {N_CLASSES} classes, 3 clusters each:")
    model, seconds = train_on_stream(X[train], y[train])
    polk = measure("parsimon POLKClassifier", model, seconds, X[test], y[test], model.model_order_)

    svc = SVC(gamma=1 / (2 * VARIANCE))
    start = time.perf_counter()
    svc.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    points = int(svc.n_support_.sum())
    print_table([polk, measure("scikit-learn SVC", svc, seconds, X[test], y[test], points)])
    return 0 if draw(model, X[train], y[train], polk, options.output) else 1


def train_on_stream(X: Any, y: Any) -> tuple[POLKClassifier, float]:
    """Show the samples to a classifier block by block; return it and its training time."""
    model = POLKClassifier(
        loss="hinge",
        kernel=kernels.Gaussian(VARIANCE**0.5),
        learning_rate=6.0,
        parsimony=0.04,
        regularization=1e-6,
        batch_size=32,
    )
    seconds = 0.0
    with progress(len(X), description="learning") as bar:
        for first in range(0, len(X), BLOCK):
            block = slice(first, first + BLOCK)
            start = time.perf_counter()
            model.partial_fit(X[block], y[block])
            seconds += time.perf_counter() - start
            bar.set_postfix(model_order=model.model_order_, loss=model.trace_["loss"][-1])
            bar.update(len(X[block]))
    return model, seconds


def measure(name: str, model: Any, seconds: float, X: Any, y: Any, points: int) -> Row:
    """Test a trained model."""
    start = time.perf_counter()
    error = float((model.predict(X) != y).mean())
    return Row(name, error, points, seconds, time.perf_counter() - start)


def print_table(rows: Sequence[Row]) -> None:
    """Print how the models compare."""
    print(f"\n{'':24}{'test error':>12}{'points':>10}{'training':>12}{'prediction':>13}")
    for row in rows:
        print(
            f"{row.name:24}{100 * row.test_error:>10.1f} %{row.points:>10,}"
            f"{row.training_seconds:>10.3f} s{row.prediction_seconds:>11.4f} s"
        )
    print()


def draw(model: POLKClassifier, X: Any, y: Any, row: Row, path: Path) -> bool:
    """Draw decision regions, data and dictionary into a file; return whether that was possible."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        print(
            f"{path} was not written: it needs matplotlib. "
            "Install it with: pip install 'parsimon[plot]'",
            file=sys.stderr,
        )
        return False
    from .plotting import DecisionSurfaceDisplay

    figure = Figure(figsize=(7.2, 6.1), dpi=120, layout=ConstrainedLayoutEngine(h_pad=0.1))
    axes = figure.subplots()
    DecisionSurfaceDisplay.from_estimator(model, X, y, grid_resolution=400, ax=axes)
    axes.set_aspect("equal", adjustable="box")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_title(
        f"POLK on multidist: model order {row.points}, test error {100 * row.test_error:.1f} %",
        fontsize=14,
        fontweight="bold",
        pad=26,
    )
    axes.text(
        *(0.5, 1.015),
        f"black dots: the dictionary, all that the model keeps of {len(X):,} samples",
        fontsize=11,
        color="0.3",
        horizontalalignment="center",
        transform=axes.transAxes,
    )
    figure.savefig(path)
    print(f"Decision regions, data and dictionary points: {path}")
    return True


if __name__ == "__main__":
    sys.exit(main())
