"""What the POLK estimators share: settings for the core, chosen or given."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from parsimon import _auto, _core, schedules
from parsimon._base import StreamEstimator, Training
from parsimon._checks import is_number
from parsimon.kernels import Kernel


class POLK(StreamEstimator):
    """What the classifier and the regressor share: settings for the core, chosen or given."""

    learning_rate: float | str
    parsimony: float | str
    budget: float | None
    max_model_order: int | None
    schedule: schedules.PowerLaw | str
    regularization: float | str
    average: bool

    @classmethod
    def _core_model(cls) -> Any:
        return _core.Polk

    @abstractmethod
    def _core_loss(self, outputs: int) -> Any:
        """Return the core's loss for this many outputs."""

    def _check_parameters(self) -> None:
        """Refuse hyper-parameters that make no sense, before any data are looked at."""
        for name in ("learning_rate", "regularization", "parsimony"):
            _check_number(name, getattr(self, name), positive=name == "learning_rate", auto=True)
        if self.budget is not None:
            _check_number("budget", self.budget, positive=False)
        for name in ("batch_size", "epochs", "max_model_order"):
            _check_count(name, getattr(self, name), auto=name == "epochs")
        for name in ("shuffle", "average"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.verbose, (int, np.integer, np.bool_)):
            raise ValueError(f"verbose must be an integer; got {self.verbose!r}.")
        if self.budget is not None and self.max_model_order is not None:
            raise ValueError(
                "Give a fixed budget or a max_model_order that the budget adapts to, not both."
            )
        schedules.resolve(self.schedule)
        self._resolve_kernel(1.0)
        self._check_gamma()

    def _check_gamma(self) -> None:
        gamma: Any = self.gamma
        named = isinstance(gamma, str) and gamma in ("auto", "scale", "median")
        if not named and not (is_number(gamma) and gamma > 0):
            raise ValueError(
                f"gamma must be a positive, finite number, 'auto', 'scale' or 'median'; got "
                f"{gamma!r}."
            )

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
        )
        return model, recipe.kernel, recipe.epochs

    def _warn_if_target_is_out_of_reach(self) -> None:
        super()._warn_if_target_is_out_of_reach()
        target = self.max_model_order
        if target is not None and self.model_order_ > 1.1 * target + 1:
            warnings.warn(
                f"The model order is {self.model_order_} after {len(self.trace_['loss'])} "
                f"mini-batches, above the max_model_order of {target} that the budget is still "
                f"adapting to; train for more epochs.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _refits(self) -> bool:
        """Whether fit ends with an exact fit of the weights."""
        return False

    @abstractmethod
    def _n_outputs(self, training: Training) -> int:
        """Return how many outputs the model has."""


def _check_number(name: str, value: Any, *, positive: bool, auto: bool = False) -> None:
    if auto and isinstance(value, str) and value == "auto":
        return
    if is_number(value) and (value > 0 or (value == 0 and not positive)):
        return
    wanted = "a positive, finite number" if positive else "a finite number, not negative"
    choice = ", or 'auto'" if auto else ""
    raise ValueError(f"{name} must be {wanted}{choice}; got {value!r}.")


def _check_count(name: str, value: Any, *, auto: bool) -> None:
    if (auto and isinstance(value, str) and value == "auto") or (
        value is None and name == "max_model_order"
    ):
        return
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if integer and 1 <= value <= np.iinfo(np.int64).max:
        return
    choice = ", or 'auto'" if auto else ""
    raise ValueError(f"{name} must be an integer of at least 1{choice}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {value!r}.")
