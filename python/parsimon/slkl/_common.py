"""What the SLKL estimators share: columns, their weights, and the function they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from parsimon import _auto, _core
from parsimon._advice import warn_of_features_out_of_scale
from parsimon._checks import check_count, check_flag, choice, count, is_number, number, warn
from parsimon._model import Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._sklearn import TransformerMixin
from parsimon._stream import NOTHING, Samples
from parsimon._targets import mean_of
from parsimon._threads import threads_of
from parsimon._types import Auto, Columns, CoordinateStep, Gamma, Selection, SLKLKernel
from parsimon.expansion import KernelExpansion
from parsimon.kernels import Kernel, Linear

from ._columns import check_columns, drawn_columns, given_columns
from ._joint import solve_jointly
from ._problem import (
    SEPARATE,
    Problem,
    SeparateKernels,
    inverse_roots,
    parts_of,
    plain,
    precomputed,
    separate,
)

# Columns beyond which their products, 8 bytes each, do not belong into memory unasked: 3 GB.
_MOST_STORED = 20_000


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


def _check_kernel(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "precomputed"):
        WORDS["kernel"](name, value)


def _check_store_columns(name: str, value: Any) -> None:
    if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value == "auto")):
        raise ValueError(f'{name} must be True, False or "auto"; got {value!r}.')


@estimator()
class SLKL(TransformerMixin, ModelEstimator):
    """What the regressor and the classifier share, hyper-parameters included."""

    _: KW_ONLY
    kernel: SLKLKernel = "rbf"
    gamma: Gamma = "scale"
    n_columns: int | float | None = None
    columns: Columns = "random"
    sparsity: float | Auto = "auto"
    nu: float | None = None
    regularization: float = 1.0
    separate: bool = False
    joint: bool = False
    center: bool = True
    tol: float = 1e-5
    max_iter: int = 1000
    step: CoordinateStep = "exact"
    selection: Selection = "shrinking"
    store_columns: bool | Auto = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    _words = {
        **WORDS,
        "kernel": _check_kernel,
        "n_columns": _check_n_columns,
        "separate": check_flag,
        "joint": check_flag,
        "columns": check_columns,
        "sparsity": number(positive=True, auto=True, most=1),
        "nu": number(positive=True, optional=True),
        "regularization": number(positive=True),
        "center": check_flag,
        "tol": number(),
        "max_iter": count(),
        "step": choice("exact", "newton"),
        "selection": choice("uniform", "shrinking"),
        "store_columns": _check_store_columns,
        "warm_start": check_flag,
    }
    _algorithms = ("slkl", SEPARATE)
    # What sparsity="auto" is.
    _fraction: ClassVar[float] = 3e-5
    _floats = (np.float64,)

    def _check_together(self) -> None:
        if self.nu is not None and not 0 < float(self.nu) * float(self.regularization) < np.inf:
            raise ValueError(
                f"The product of nu and regularization must be a positive, finite number; "
                f"{self.nu!r} times {self.regularization!r} is not."
            )

        given = self._is_precomputed()
        if given and isinstance(self.columns, str) and self.columns != "random":
            raise ValueError(
                f"columns={self.columns!r} looks at samples, which kernel='precomputed' has none "
                f"of: use 'random', or give indices."
            )
        if given and self.separate:
            raise ValueError(
                "separate=True needs a kernel with parts, as a + b; kernel='precomputed' has none."
            )
        if self.separate and (isinstance(self.kernel, str) or len(parts_of(self.kernel)) == 1):
            raise ValueError(
                f"separate=True needs a kernel with parts, as a + b or 2.0 * (a + b); "
                f"kernel={self.kernel!r} has none."
            )
        if self.joint and self.warm_start:
            raise ValueError("warm_start=True is for outputs on their own; joint=True begins anew.")

    def _fraction_now(self) -> float:
        """Return the price as a fraction of the largest useful one."""
        return self._fraction if isinstance(self.sparsity, str) else float(self.sparsity)

    def _learn(self, X: Any, targets: Array, fitted: dict[str, Any], weight: Array) -> None:
        """Minimise the objective of each output and adopt the function that this gives."""
        if not self._is_precomputed():
            warn_of_features_out_of_scale(self, X)
        problem = self._problem(X, targets, weight)
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
            if self.joint:
                return [self._solve_jointly(problem)]
            return [self._solve_one(problem, k, starts[:, k]) for k in range(starts.shape[1])]

    def _solve_one(self, problem: Problem, output: int, start: Array) -> Any:
        return problem.core.solve(
            output,
            penalty=problem.penalty(self._price(), self._fraction_now(), output),
            start=start / float(self.regularization),
            tolerance=float(self.tol),
            epochs=int(self.max_iter),
            step=self.step,
            selection=self.selection,
            seed=problem.seed + output,
        )

    def _solve_jointly(self, problem: Problem) -> Any:
        return solve_jointly(
            problem.core,
            problem.square,
            problem.penalty(self._price(), self._fraction_now()),
            tolerance=float(self.tol),
            epochs=int(self.max_iter),
        )

    def _price(self) -> float | None:
        """Return the product of nu and lambda, if nu was given."""
        return None if self.nu is None else float(self.nu) * float(self.regularization)

    def _keep(self, problem: Problem, solutions: list[Any], fitted: dict[str, Any]) -> None:
        mu = np.column_stack([s.mu for s in solutions]) * float(self.regularization)
        weights = np.column_stack([s.weights for s in solutions])
        if self.joint or problem.explicit:  # those of c_m: the others are of k(., x_m)
            weights = weights * problem.scale[:, None]
        used = np.flatnonzero((mu > 0).any(axis=1))
        support = problem.columns[used]
        model = problem.model(used, np.ascontiguousarray(weights[used]))
        objective = _summed([s.objective for s in solutions])
        fitted = {
            **fitted,
            "_kernel_": problem.kernel,
            "mu_": mu,
            "columns_": problem.columns,
            "support_": support,
            "_parts_": problem.parts,
            "objective_": objective,
            "dual_gap_": float(sum(s.gap for s in solutions)),
            "n_iter_": len(objective) - 1,
            "intercept_": problem.intercept,
        }
        if mu.shape[1] == 1 and (self.joint or fitted.get("_single_", True)):
            fitted["mu_"] = mu[:, 0]
        self._adopt(model, fitted)
        # What it has adopted, for type checkers; an annotation of the class is a hyper-parameter.
        self.mu_: Array
        self.columns_: NDArray[np.int64]
        self.support_: NDArray[np.int64]
        self.objective_: Array
        self.dual_gap_: float
        self.n_iter_: int
        self.intercept_: Array
        self._parts_: NDArray[np.int64]
        self._single_: bool

    def _problem(self, X: Any, targets: Array, weight: Array = NOTHING) -> Problem:
        if len(weight) and not weight.any():
            raise ValueError("The weights of all samples are 0: there is nothing to learn from.")
        X = X.toarray() if sparse.issparse(X) else X
        random = check_random_state(self.random_state)
        given = self._is_precomputed()
        if given and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"With kernel='precomputed', X must hold the kernel of all pairs of training "
                f"samples; its shape is {X.shape}."
            )
        kernel: Kernel = Linear()
        if not given:
            kernel = _auto.choose_kernel(self.kernel, self.gamma, Samples(X, targets))
        columns = self._choose_columns(X, kernel, random)
        intercept = np.zeros(targets.shape[1])
        if self.center:
            intercept = mean_of(targets, weight)[0]
        several = len(parts_of(kernel)) if self.separate else 1
        stored = self._stores(several * len(columns))
        if given:
            made = precomputed(X, columns)
        elif self.separate:
            made = separate(kernel, X, columns)
        else:
            made = plain(kernel, X, columns, stored=stored)
        samples, centred = made.pop("samples"), np.ascontiguousarray(targets - intercept)
        with threads_of(self.n_jobs):
            made["core"].prepare(samples, centred, weight)
        square = float((centred**2 * (weight[:, None] if len(weight) else 1.0)).sum())
        seed = int(random.randint(2**31 - 1))
        return Problem(**made, square=square, intercept=intercept, seed=seed)

    def _stores(self, columns: int) -> bool:
        few = columns <= _MOST_STORED
        stored = few if self.store_columns == "auto" else bool(self.store_columns)
        if stored and not few:
            raise ValueError(
                f"The products of {columns} columns would take "
                f"{8e-9 * columns**2:.0f} GB; choose n_columns, at most {_MOST_STORED}, or "
                f'leave store_columns at "auto".'
            )
        needed = [name for name in ("joint", "separate") if getattr(self, name)]
        if needed and not stored:
            raise ValueError(
                f"{needed[0]}=True needs the products of all columns: choose n_columns, at most "
                f"{_MOST_STORED}, and leave store_columns at 'auto'."
            )
        return stored

    def _choose_columns(
        self, X: Array, kernel: Kernel, random: np.random.RandomState
    ) -> NDArray[np.int64]:
        samples = len(X)
        if not isinstance(self.columns, str):
            return given_columns(self.columns, X)
        count = self._column_count(samples)
        if self.warm_start and hasattr(self, "columns_"):
            known: NDArray[np.int64] = np.asarray(self.columns_)[np.asarray(self._parts_) == 0]
            if len(known) == count and known.max() < samples:
                return known
        if count == samples:
            return np.arange(samples, dtype=np.int64)
        return np.sort(drawn_columns(self.columns, X, kernel, count, random)).astype(np.int64)

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
            word = "sparsity" if self.nu is None else "nu"
            remedy = f"raise {word}" if rounded else "raise max_iter or tol"
            warn(
                f"The objective had not converged after {epochs} epochs"
                f"{f' for {len(late)} of the outputs' if len(solutions) > 1 else ''}"
                f"{', and rounding keeps it from its minimum' if rounded else ''}; {remedy}.",
                ConvergenceWarning,
            )
        largest = float(np.abs(problem.core.correlations).max())
        if largest > 0 and not any(s.mu.any() for s in solutions):
            word, value, limit = "sparsity", self._fraction_now(), 1.0
            if self.nu is not None:
                word, value, limit = "nu", float(self.nu), largest**2 / self.regularization
            warn(
                f"No column is used, and every prediction is the intercept: {word} is {value:g}, "
                f"and must be below {limit:.3g} here for anything else.",
                ConvergenceWarning,
            )

    @property
    def expansions_(self) -> list[KernelExpansion]:
        """The functions that add up to the learned one, one for each kernel."""
        model = self._state("expansions_")
        if isinstance(model, SeparateKernels):
            return model.expansions
        return [self.expansion_]

    @property
    def kernel_shares_(self) -> Array:
        """How much of all weights `mu_` each kernel has: all 0 if no column is used."""
        self._state("kernel_shares_")
        mu = np.asarray(self.mu_).reshape(len(self.mu_), -1).sum(axis=1)
        shares = np.bincount(self._parts_, mu)
        return np.asarray(shares / (shares.sum() or 1.0))

    def _replace(self, model: Any, points: Array, weights: Array) -> None:
        if isinstance(model, SeparateKernels):
            raise ValueError("With separate=True the function is no single expansion.")
        places = {row.tobytes(): i for i, row in enumerate(model.dictionary)}
        rows = [places.get(row.tobytes()) for row in np.ascontiguousarray(points)]
        if None in rows:
            raise ValueError(
                "The points of an SLKL model are training samples: expansion_ may have fewer of "
                "them, and other weights, but no other points."
            )
        fitted = {"support_": np.asarray(self.support_)[np.array(rows, dtype=np.int64)]}
        self._adopt(_core.Slkl(self._kernel_.core, points, weights), fitted)

    def transform(self, X: ArrayLike) -> Array:
        """Return the features of the learned kernel: sum_m mu_m c_m(x) c_m(x') is their product.

        With them, linear methods of other kinds work with the kernel that was learned here.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        features : ndarray of shape (n_samples, model_order_)
            sqrt(mu_m) k(x, x_m) / sqrt(k(x_m, x_m)), one column for each point in `support_`. Of
            several outputs, mu is the mean of theirs.
        """
        self._fitted_model()
        checked = self._validate_samples(X)
        checked = checked.toarray() if sparse.issparse(checked) else checked
        mu = np.asarray(self.mu_).reshape(len(self.mu_), -1).mean(axis=1)
        used = self._used()
        if isinstance(self._model, SeparateKernels):
            columns = [
                each.kernel(checked, each.dictionary)
                * inverse_roots(each.kernel.diag(each.dictionary))
                for each in self._model.expansions
                if each.model_order
            ]
            # Of one kernel after the other, as the columns are.
            return np.asarray(np.hstack(columns) * np.sqrt(mu[used]))
        points, kernel = self.dictionary_, self._kernel_
        given = self._is_precomputed()
        norms = np.ones(len(points)) if given else kernel.diag(points)
        return np.asarray(kernel(checked, points) * np.sqrt(mu[used] / norms))

    def _used(self) -> NDArray[np.int64]:
        """Return the places in `columns_` of those in `support_`, kernel by kernel."""
        mu = np.asarray(self.mu_).reshape(len(self.mu_), -1)
        if isinstance(self._model, SeparateKernels):
            return np.array(np.flatnonzero((mu > 0).any(axis=1)))
        places = {int(column): i for i, column in enumerate(self.columns_)}
        found: NDArray[np.int64] = np.array(
            [places[int(column)] for column in self.support_], dtype=np.int64
        )
        return found

    def _read_model(self, archive: _core.Archive, kernel: Kernel) -> Any:
        if archive["algorithm"] == SEPARATE:
            return SeparateKernels.from_archive(archive, kernel)
        return super()._read_model(archive, kernel)

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        if "_parts_" not in fitted:  # files of earlier versions have one kernel
            fitted["_parts_"] = np.zeros(len(fitted["columns_"]), dtype=np.int64)
        super()._check_stored(fitted, archive)
        if fitted["_parts_"].shape != fitted["columns_"].shape:
            raise ValueError(f"The model file does not hold a {type(self).__name__}.")

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _some(self, X: Any, rows: Any, training: Any) -> Any:
        """Return samples; of kernel values, those with the samples to train on."""
        return X[np.ix_(rows, training)] if self._is_precomputed() else X[rows]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

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
            "_parts_": indices,
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
