"""What the POLK estimators share: settings for the core, chosen or given."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from parsimon import _auto, _core, schedules
from parsimon._base import Array, StreamEstimator, Training
from parsimon._checks import (
    check_choice,
    check_count,
    check_exclusive,
    check_flag,
    check_number,
    check_verbose,
)
from parsimon._settings import Schedule, check_budget, core_maintenance
from parsimon._threads import check_n_jobs
from parsimon.kernels import Kernel


class POLK(StreamEstimator):
    """What the classifier and the regressor share: settings for the core, chosen or given."""

    gamma: float | str
    batch_size: int
    learning_rate: float | str
    parsimony: float | str
    budget: float | schedules.AdaptiveBudget | None
    max_points: int | None
    schedule: schedules.PowerLaw | str
    regularization: float | str
    average: bool
    dtype: str = "float64"

    _algorithms: tuple[str, ...] = ("polk",)

    @abstractmethod
    def _core_loss(self, outputs: int) -> Any:
        """Return the core's loss for this many outputs."""

    def _check_parameters(self) -> None:
        """Refuse hyper-parameters that make no sense, before any data are looked at."""
        for name in ("learning_rate", "regularization"):
            check_number(name, getattr(self, name), positive=name == "learning_rate", auto=True)
        self._check_compression()
        check_count("batch_size", self.batch_size)
        check_count("epochs", self.epochs, auto=True)
        for name in ("shuffle", "average"):
            check_flag(name, getattr(self, name))
        check_verbose(self.verbose)
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_n_jobs(self.n_jobs)
        schedules.resolve(self.schedule)
        _auto.resolve_kernel(self.kernel, 1.0)
        _auto.check_gamma(self.gamma)

    def _check_compression(self) -> None:
        check_number("parsimony", self.parsimony, positive=False, auto=True)
        check_budget("budget", self.budget)
        if self.max_points is not None:
            check_count("max_points", self.max_points)
        check_exclusive(self, "budget", "parsimony")

    # Whether the number of points is bounded rather than the error.
    _caps_points = False

    def _maintenance(self) -> Schedule | None:
        """Return how the number of points is bounded, if it is."""
        return None if self.max_points is None else core_maintenance("project", self.max_points)

    def _new_model(self, training: Training, *, streaming: bool) -> tuple[Any, Kernel, int]:
        loss = self._core_loss(self._n_outputs(training))
        recipe = _auto.choose(self, training, loss, streaming=streaming)
        model = _core.Polk(
            recipe.kernel.core,
            loss,
            recipe.step,
            recipe.budget,
            recipe.regularization,
            self.average,
            training.X.shape[1],
            self._n_outputs(training),
            self._maintenance(),
        )
        return model, recipe.kernel, recipe.epochs

    def _warn_if_target_is_out_of_reach(self) -> None:
        super()._warn_if_target_is_out_of_reach()
        if not isinstance(self.budget, schedules.AdaptiveBudget):
            return
        target = self.budget.target
        if self.model_order_ > 1.1 * target + 1:
            warnings.warn(
                f"The model order is {self.model_order_} after {len(self.trace_['loss'])} "
                f"mini-batches, above the target of {target} that the budget is still adapting to; "
                f"train for more epochs.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _mini_batch(self) -> int:
        return int(self.batch_size)

    def _feed(
        self,
        model: Any,
        training: Training,  # noqa: ARG002
        X: Array,
        targets: Array,
        weight: Array,
    ) -> int:
        return int(model.run(X, targets, weight, self.batch_size))

    def _foreign_entries(self, entries: dict[str, Any]) -> list[str]:
        classifies = _core.parse_loss(entries["loss"]).is_classification
        wrong = [] if classifies == is_classifier(self) else ["loss"]
        rules = {True: ("remove", "project", "merge", "nonparametric"), False: ("none", "project")}
        known = entries.get("maintenance", "none") in rules[self._caps_points]
        return wrong if known else [*wrong, "maintenance"]

    def _refits(self) -> bool:
        """Whether fit ends with an exact fit of the weights."""
        return False

    @abstractmethod
    def _n_outputs(self, training: Training) -> int:
        """Return how many outputs the model has."""
