"""What the SLKL estimators share: columns, their weights, and the function they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from parsimon import _auto, _core
from parsimon._checks import check_count, check_flag, choice, count, is_number, number, warn
from parsimon._model import Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._stream import Samples
from parsimon._targets import mean_of
from parsimon._threads import threads_of
from parsimon.kernels import Kernel

# Columns beyond which their products, 8 bytes each, do not belong into memory unasked: 3 GB.
_MOST_STORED = 20_000


@dataclass(frozen=True)
class Problem:
    """Samples, targets (one column per output) and the columns that were chosen, ready to solve."""

    kernel: Kernel
    X: Array
    columns: NDArray[np.int64]
    core: Any
    intercept: Array
    seed: int

    def solve(self, estimator: SLKL, output: int, start: Array) -> Any:
        """Minimise the objective of one output."""
        return self.core.solve(
            output,
            penalty=float(estimator.sparsity) * float(estimator.regularization),
            start=start / float(estimator.regularization),
            tolerance=float(estimator.tol),
            epochs=int(estimator.max_iter),
            step=estimator.step,
            selection=estimator.selection,
            seed=self.seed + output,
        )


def _check_n_columns(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, (float, np.floating)) and 0 < value <= 1:
        return
    if not isinstance(value, (float, np.floating)):
        check_count(name, value)
        return
    raise ValueError(
        f"{name} must be an integer of at least 1, a fraction of the samples between 0 and 1, "
        f"or None; got {value!r}."
    )


def _check_store_columns(name: str, value: Any) -> None:
    if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value == "auto")):
        raise ValueError(f'{name} must be True, False or "auto"; got {value!r}.')


@estimator()
class SLKL(ModelEstimator):
    """What the regressor and the classifier share, hyper-parameters included."""

    _: KW_ONLY
    kernel: Kernel | str = "rbf"
    gamma: float | str = "scale"
    n_columns: int | float | None = None
    sparsity: float = 0.01
    regularization: float = 1.0
    center: bool = True
    tol: float = 1e-5
    max_iter: int = 1000
    step: str = "exact"
    selection: str = "shrinking"
    store_columns: bool | str = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    _words = {
        **WORDS,
        "n_columns": _check_n_columns,
        "sparsity": number(positive=True),
        "regularization": number(positive=True),
        "center": check_flag,
        "tol": number(),
        "max_iter": count(),
        "step": choice("exact", "newton"),
        "selection": choice("uniform", "shrinking"),
        "store_columns": _check_store_columns,
        "warm_start": check_flag,
    }
    _algorithms = ("slkl",)
    _floats = (np.float64,)

    def _check_together(self) -> None:
        if not 0 < float(self.sparsity) * float(self.regularization) < np.inf:
            raise ValueError(
                f"The product of sparsity and regularization must be a positive, finite number; "
                f"{self.sparsity!r} times {self.regularization!r} is not."
            )

    def _learn(self, X: Any, targets: Array, fitted: dict[str, Any]) -> None:
        """Minimise the objective of each output and adopt the function that this gives."""
        problem = self._problem(X, targets)
        starts = self._starts(problem, targets.shape[1])
        solutions = self._solve(problem, starts)
        self._warn(problem, solutions)
        self._keep(problem, solutions, fitted)
        if self.verbose:
            print(
                f"{type(self).__name__}: {self.n_iter_} epochs, objective "
                f"{self.objective_[-1]:.6g}, at most {self.dual_gap_:.1e} above the minimum, "
                f"{len(self.support_)} of {len(problem.columns)} columns used"
            )

    def _solve(self, problem: Problem, starts: Array) -> list[Any]:
        with threads_of(self.n_jobs):
            return [problem.solve(self, k, starts[:, k]) for k in range(starts.shape[1])]

    def _keep(self, problem: Problem, solutions: list[Any], fitted: dict[str, Any]) -> None:
        mu = np.column_stack([s.mu for s in solutions]) * float(self.regularization)
        weights = np.column_stack([s.weights for s in solutions])
        used = np.flatnonzero((mu > 0).any(axis=1))
        support = problem.columns[used]
        model = _core.Slkl(
            problem.kernel.core,
            np.ascontiguousarray(problem.X[support]),
            np.ascontiguousarray(weights[used]),
        )
        objective = _summed([s.objective for s in solutions])
        fitted = {
            **fitted,
            "_kernel_": problem.kernel,
            "mu_": mu,
            "columns_": problem.columns,
            "support_": support,
            "objective_": objective,
            "dual_gap_": float(sum(s.gap for s in solutions)),
            "n_iter_": len(objective) - 1,
            "intercept_": problem.intercept,
        }
        if mu.shape[1] == 1 and fitted.get("_single_", True):
            fitted["mu_"] = mu[:, 0]
        self._adopt(model, fitted)

    def _problem(self, X: Any, targets: Array) -> Problem:
        X = X.toarray() if sparse.issparse(X) else X
        random = check_random_state(self.random_state)
        columns = self._choose_columns(len(X), random)
        few = len(columns) <= _MOST_STORED
        stored = few if self.store_columns == "auto" else bool(self.store_columns)
        if stored and not few:
            raise ValueError(
                f"The products of {len(columns)} columns would take "
                f"{8e-9 * len(columns) ** 2:.0f} GB; choose n_columns, at most {_MOST_STORED}, or "
                f'leave store_columns at "auto".'
            )
        kernel = _auto.choose_kernel(self.kernel, self.gamma, Samples(X, targets))
        intercept = mean_of(targets)[0] if self.center else np.zeros(targets.shape[1])
        core = _core.KernelColumns(kernel.core, np.ascontiguousarray(X[columns]), stored)
        with threads_of(self.n_jobs):
            core.prepare(X, np.ascontiguousarray(targets - intercept))
        return Problem(kernel, X, columns, core, intercept, int(random.randint(2**31 - 1)))

    def _choose_columns(self, samples: int, random: np.random.RandomState) -> NDArray[np.int64]:
        count = self._column_count(samples)
        if self.warm_start and hasattr(self, "columns_"):
            known = np.asarray(self.columns_)
            if len(known) == count and known.max() < samples:
                return known
        if count == samples:
            return np.arange(samples, dtype=np.int64)
        return np.sort(random.choice(samples, count, replace=False)).astype(np.int64)

    def _column_count(self, samples: int) -> int:
        if self.n_columns is None:
            return samples
        if isinstance(self.n_columns, (float, np.floating)):
            return max(1, round(float(self.n_columns) * samples))
        if self.n_columns > samples:
            warn(
                f"n_columns is {self.n_columns}, but there are only {samples} samples: each gives "
                f"one column, and all are used."
            )
        return min(int(self.n_columns), samples)

    def _starts(self, problem: Problem, outputs: int) -> Array:
        if self.warm_start and hasattr(self, "mu_"):
            mu = np.asarray(self.mu_).reshape(len(self.mu_), -1)
            same = np.array_equal(self.columns_, problem.columns)
            if same and mu.shape == (len(problem.columns), outputs):
                return mu
        return np.zeros((len(problem.columns), outputs))

    def _warn(self, problem: Problem, solutions: list[Any]) -> None:
        late = [s for s in solutions if not s.converged]
        if late:
            epochs = max(len(s.objective) - 1 for s in late)
            rounded = epochs < self.max_iter
            remedy = "raise sparsity, or scale y down" if rounded else "raise max_iter or tol"
            warn(
                f"The objective had not converged after {epochs} epochs"
                f"{f' for {len(late)} of the outputs' if len(solutions) > 1 else ''}"
                f"{', and rounding keeps it from its minimum' if rounded else ''}; {remedy}.",
                ConvergenceWarning,
            )
        largest = float(np.abs(problem.core.correlations).max())
        if largest > 0 and not any(s.mu.any() for s in solutions):
            warn(
                f"No column is used, and every prediction is the intercept: sparsity is "
                f"{self.sparsity:g}, and must be below {largest**2 / self.regularization:.3g} "
                f"here for anything else.",
                ConvergenceWarning,
            )

    def _replace(self, model: Any, points: Array, weights: Array) -> None:
        places = {row.tobytes(): i for i, row in enumerate(model.dictionary)}
        rows = [places.get(row.tobytes()) for row in np.ascontiguousarray(points)]
        if None in rows:
            raise ValueError(
                "The points of an SLKL model are training samples: expansion_ may have fewer of "
                "them, and other weights, but no other points."
            )
        fitted = {"support_": np.asarray(self.support_)[np.array(rows, dtype=np.int64)]}
        self._adopt(_core.Slkl(self._kernel_.core, points, weights), fitted)

    def _affine(self) -> tuple[Any, Any]:
        return self.intercept_, 1.0

    def _values(self, X: Any) -> Array:
        return np.asarray(self._evaluate(X) + self.intercept_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        def finite(value: Any) -> bool:
            return value.dtype.kind == "f" and bool(np.isfinite(value).all())

        def indices(value: Any) -> bool:
            return value.ndim == 1 and value.dtype.kind == "i" and bool((value >= 0).all())

        return {
            "mu_": lambda value: finite(value) and bool((value >= 0).all()) and value.ndim <= 2,
            "columns_": lambda value: indices(value) and len(value) > 0,
            "support_": indices,
            "objective_": lambda value: value.ndim == 1 and finite(value),
            "dual_gap_": lambda value: is_number(value) and value >= 0,
            "n_iter_": lambda value: type(value) is int and value >= 0,
            "intercept_": lambda value: value.shape == (outputs,) and finite(value),
        }


def _summed(objectives: list[list[float]]) -> Array:
    """Add the objectives of all outputs epoch by epoch; one that is done keeps its last value."""
    longest = max(map(len, objectives))
    padded = [np.pad(values, (0, longest - len(values)), mode="edge") for values in objectives]
    return np.asarray(np.sum(padded, axis=0))
