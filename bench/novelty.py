"""Novelty detection beside scikit-learn: unusual samples that nobody has seen in training.

Each detector learns from one half of the normal samples of a data set, scaled to variance 1, and is
shown the other half and the abnormal ones. With 10 % contamination a tenth of the normal ones
should be called outliers. Data: USPS digits (each in turn is normal; needs PARSIMON_DATA or
OpenML), breast tumours (benign ones are normal), the space shuttle's sensors (in river's wheel).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from bench import machine, report
from bench.cli import MissingDataError, left_out, positive_int
from bench.compare import saved_bytes
from bench.report import Column, Table
from bench.runner import Experiment, Figures, Method, Row, Run
from parsimon import POLKOneClass, datasets
from parsimon.stream import in_blocks

CONTAMINATION = 0.1
MOST = 10_000  # samples to learn from
BLOCK = 10


@dataclass(frozen=True)
class Task:
    train: NDArray[np.float64]
    normal: NDArray[np.float64]
    abnormal: NDArray[np.float64]


def split(X: Any, is_normal: Any, samples: int, seed: int) -> Task:
    """Return half of the normal samples to learn from, and everything else."""
    order = np.random.default_rng(seed).permutation(len(X))
    X, is_normal = X[order].astype(np.float64), is_normal[order]
    normal, abnormal = X[is_normal], X[~is_normal]
    count = min(len(normal) // 2, samples)
    scaler = StandardScaler().fit(normal[:count])
    parts = normal[:count], normal[count : count + MOST], abnormal[:MOST]
    return Task(*map(scaler.transform, parts))


def usps(seed: int, samples: int) -> Task:
    """Return the task of a digit, the seed's last one."""
    try:
        X, y = datasets.load_usps(subset="all", return_X_y=True)
    except (OSError, RuntimeError) as error:
        raise MissingDataError(f"USPS cannot be loaded: {error}") from error
    return split(X, y == seed % 10, samples, seed)


def tumours(seed: int, samples: int) -> Task:
    data = load_breast_cancer()
    return split(data.data, data.target == 1, samples, seed)


def shuttle(seed: int, samples: int) -> Task:
    if machine.installed("river") is None:
        raise MissingDataError("The shuttle's sensors are in river's wheel: pip install river.")
    from river.datasets import Shuttle

    pairs = list(Shuttle())
    X = np.array([[*x.values()] for x, _ in pairs], dtype=np.float64)
    return split(X, np.array([label for _, label in pairs]) == 0, samples, seed)


@dataclass(frozen=True)
class Source:
    title: str
    load: Callable[..., Task]
    runs: int


SOURCES = {
    "usps": Source("USPS, a digit in turn", usps, 10),
    "tumours": Source("Breast tumours", tumours, 10),
    "shuttle": Source("Shuttle", shuttle, 3),
}


class Stream(POLKOneClass):
    """Shown ten samples at a time, once."""

    def fit(self, X: Any, y: None = None, sample_weight: None = None) -> Stream:
        for block, _ in in_blocks(X, rows=BLOCK):
            self.partial_fit(block)
        return self


def support_vectors() -> Any:
    return OneClassSVM(nu=CONTAMINATION)


def forest(random_state: int) -> Any:
    return IsolationForest(contamination=CONTAMINATION, random_state=random_state)


METHODS = (
    Method("POLKOneClass", "POLKOneClass", {"contamination": CONTAMINATION}),
    Method("POLKOneClass, stream", Stream, {"contamination": CONTAMINATION}),
    Method("OneClassSVM", support_vectors),
    Method("IsolationForest", forest),
)
COLUMNS = (
    Column("AUC %", "auc"),
    Column("false alarms %", "false_alarms"),
    Column("found %", "found"),
    Column("training s", "seconds"),
    Column("us per prediction", "predict_us"),
    Column("points", "points"),
    Column("bytes", "bytes", lambda values: f"{np.mean(values):,.0f}"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", nargs="+", choices=[*SOURCES], default=[*SOURCES], help="all by default")
    add("--samples", type=positive_int, default=MOST, help="to learn from, at most")
    add("--runs", type=positive_int, help="splits of the data")
    report.add_json(parser)
    parser.set_defaults(out=None, quick=False)


def run(options: argparse.Namespace) -> int:
    found: dict[str, Sequence[Row]] = {}
    for name in options.data:
        source = SOURCES[name]
        experiment = Experiment(
            name,
            source.title,
            METHODS,
            load=source.load,
            train=measure,
            runs=source.runs,
            data={"samples": options.samples},
        )
        with left_out():
            found[source.title] = rows = experiment.rows(options)
            samples = report.span(rows[0].values("samples"))
            title = f"{source.title}: {samples} samples of {rows[0].values('features')[0]} features"
            Table.of_rows(title, rows, COLUMNS).show()
    report.write_json(options, rows=report.as_dicts(found))
    return 0 if found else 2


def measure(run: Run) -> Figures:
    task, model = run.task, run.make()
    with machine.Stopwatch() as learning:
        model.fit(task.train)
    with machine.Stopwatch() as predicting:
        normal, abnormal = (model.decision_function(part) for part in (task.normal, task.abnormal))
    truth = np.repeat([1, 0], [len(normal), len(abnormal)])
    support = getattr(model, "support_", ())
    return {
        **learning.figures,
        "samples": len(task.train),
        "features": task.train.shape[1],
        "auc": 100 * float(roc_auc_score(truth, np.concatenate([normal, abnormal]))),
        "false_alarms": 100 * float((normal < 0).mean()),
        "found": 100 * float((abnormal < 0).mean()),
        "predict_us": 1e6 * predicting.seconds / len(truth),
        "points": getattr(model, "model_order_", len(support) or None),
        "bytes": saved_bytes(model),
    }
