"""What callbacks of scikit-learn, which has them from 1.9 on, are told of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FitTasks:
    """The tasks of one call of `fit`: all of it, and one for each epoch.

    Nobody is told anything without an estimator that has callbacks, as with an earlier
    scikit-learn. The method that makes this is to be decorated by `with_callbacks`.
    """

    def __init__(
        self, estimator: Any = None, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> None:
        # As they were given: a callback may ask the estimator about them, names of columns and all.
        weight = None if sample_weight is None else {"sample_weight": sample_weight}
        self._shown = {"estimator": estimator, "X": X, "y": y, "metadata": weight}
        self._enter = getattr(estimator, "_init_callback_context", None)
        self._fit: Any = None
        self._epoch: Any = None

    def begin(self, epochs: int) -> None:
        """Tell that learning begins."""
        if self._enter is not None:
            self._fit = self._enter(max_subtasks=epochs)
            self._fit.call_on_fit_task_begin(**self._shown)

    def begin_epoch(self) -> None:
        """Tell that an epoch begins."""
        if self._fit is not None:
            self._epoch = self._fit.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(**self._shown)

    def end_epoch(self, state: Callable[[], dict[str, Any]]) -> bool:
        """Tell that an epoch is over, and return whether it shall be the last.

        `state` returns the attributes that the estimator would have if `fit` ended here.
        """
        if self._epoch is None:
            return False
        over = self._epoch.call_on_fit_task_end(**self._shown, reconstruction_attributes=state)
        return bool(over)

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._shown, reconstruction_attributes={})
