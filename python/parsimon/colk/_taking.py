"""What is kept beside a model has to know of every sample that the model has learned from."""

from __future__ import annotations

from typing import Any

from parsimon._first_samples import Start


class Taking:
    """How many of a block's samples an estimator's model has learned from, whatever ends that.

    Mini-batches that are done stay in the model: what is kept beside it has to know of them, too.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._model: Any = None
        self._before: int | None = None
        self._begins = False

    def begin(self, start: Start) -> None:
        """Remember where the model was before it learns from these."""
        self._model, self._begins = self._estimator.__dict__.get("_model"), start.begins
        self._before = 0 if start.begins or self._model is None else self._model.samples

    @property
    def taken(self) -> int:
        """The number of samples, from the first of those that learning started with."""
        model = self._estimator.__dict__.get("_model")
        if self._before is None or model is None or (self._begins and model is self._model):
            return 0
        return int(model.samples) - self._before
