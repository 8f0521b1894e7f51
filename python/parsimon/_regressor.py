"""What all regressors for streams share: targets in, predictions out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from . import _core, _stream
from ._callbacks import FitTasks
from ._docs import OF_REGRESSORS, documented
from ._drift import check_half_life
from ._first_samples import Start
from ._formula import Head, Values
from ._model import DRIFT, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator, is_finite
from ._newton import finish_fit, least_squares
from ._parameters import WORDS
from ._sklearn import CallbackSupportMixin, RegressorMixin, with_callbacks
from ._stream import Samples, checked_weight
from ._targets import Targets

if TYPE_CHECKING:
    from typing_extensions import Self

# Name in the core, and the parameter of a loss that is given without one.
_LOSSES = {
    "squared": ("squared", None),
    "squared_error": ("squared", None),
    "huber": ("huber", 1.35),
    "epsilon_insensitive": ("epsilon_insensitive", 0.1),
    "pinball": ("pinball", 0.5),
    "quantile": ("pinball", 0.5),
}


def _core_name(loss: Any) -> str:
    match = re.fullmatch(r"(\w+)(?:\((.+)\))?", loss) if isinstance(loss, str) else None
    if match is None or match[1] not in _LOSSES:
        raise ValueError(
            f"loss must be 'squared', 'huber', 'epsilon_insensitive' or 'pinball', each with "
            f"a parameter in parentheses if wanted; got {loss!r}."
        )
    name, default = _LOSSES[match[1]]
    if default is None and match[2] is None:
        return name
    return f"{name}({match[2] if match[2] is not None else default})"


def _check_loss(name: str, value: Any) -> None:  # noqa: ARG001 - the sentences have the name
    """Refuse what is not a loss of regression, or has a parameter that it cannot have."""
    _core.parse_loss(_core_name(value))


def _noise(estimator: Regressor) -> Any:
    variance = estimator._state("noise_").noise
    if estimator.__dict__.get("_predicts_only_"):
        raise AttributeError(
            "noise_ is not known to a model that was saved with training=False: save it with "
            "training=True."
        )
    if not len(variance):
        raise AttributeError(
            "noise_ is known with loss='squared' and solver='newton' only: no other loss has a "
            "variance, and no other solver keeps the statistics that tell it. Nor are there any of "
            "a linear kernel on more than 2,000 features."
        )
    noise = np.sqrt(variance) * estimator._scale_
    return float(noise[0]) if estimator._single_ else noise


NOISE = property(_noise, doc="The standard deviation of the noise of the targets.")


@documented(OF_REGRESSORS)
class Regressor(RegressorMixin, ModelEstimator, CallbackSupportMixin):
    """A regressor that learns from a stream; how its model is made is the subclass's to say."""

    loss: str
    normalize_y: bool
    refit: bool
    intercept_: Array
    _scale_: Array
    _single_: bool

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    drift_ = DRIFT

    _words = {**WORDS, "loss": _check_loss, "half_life": check_half_life}

    def _core_loss(self, outputs: int) -> Any:  # noqa: ARG002
        return _core.parse_loss(_core_name(self.loss))

    def _n_outputs(self, samples: Samples) -> int:
        return int(samples.targets.shape[1])

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            tasks = FitTasks(self, X, y, sample_weight)
            X, y = self._validate_both(X, y, reset=True)
            targets = self._measure(y)
            samples = Samples(X, targets.encode(y), checked_weight(sample_weight, X))
            _stream.fit(self, samples, targets.fitted(), tasks)
            tasks.end()
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first 100 samples fix the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``. Until then they are kept, and the model begins anew with all
        of them whenever there are half as many again. If learning ends half way, its finished
        mini-batches stay.

        {X, y, sample_weight -> self}
        """
        given: Any = y
        quick = sample_weight is None and self._is_familiar(X, given)
        if quick and given.dtype.type is np.float64 and is_finite(given):
            targets = Targets(self.intercept_, self._scale_, self._single_)
            _stream.partial_fit(self, Samples(X, targets.encode(given)), {})
            return self
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            X, y = self._validate_both(X, y, reset=first)
            if not first:
                self._targets().check(y)
                y = y.ravel() if self._single_ else y.reshape(len(y), -1)
            start = Start.of(self, X, y, checked_weight(sample_weight, X))
            rows, values, weight = start.columns
            targets = self._measure(values) if start.begins else self._targets()
            samples = Samples(rows, targets.encode(values), weight)
            _stream.learn(self, start, samples, targets.fitted())
        return self

    def _samples_again(self, X: ArrayLike, y: ArrayLike, sample_weight: Any) -> Samples:
        """Return samples with targets in the units of the model."""
        X, y = self._validate_both(X, y, reset=False)
        targets = self._targets()
        targets.check(y)
        return Samples(X, targets.encode(y), checked_weight(sample_weight, X))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the predicted target of each sample and, if asked to, how well it is known.

        The standard deviation is that of a Gaussian process with this kernel, as
        :class:`sklearn.gaussian_process.GaussianProcessRegressor` has it: with noise of variance
        s^2 and the prior variance s^2 / ridge k(x, x), f(x) has the variance

            s^2 (phi' (H + ridge I)^-1 phi + distance(x)^2 / ridge)

        where phi are the coordinates of k(x, .) in the span of the model's points and H is the sum
        of phi phi' over all samples that are remembered. It is exact if every sample is a point,
        and otherwise counts samples as if they lay in the span. A single target has the noise on
        top of it: ``sqrt(deviations**2 + noise_**2)``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Whether to return standard deviations, too; only with ``loss="squared"`` and
            ``solver="newton"``, and not of a :class:`COLKRegressor`.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
            As the targets in training.
        deviations : ndarray of the same shape
            If they were asked for: the standard deviations of the predictions, without the noise.
        """
        values = self._evaluate(X)
        predictions = self._targets().decode(values)
        return (predictions, self._standard_deviation(X)) if return_std else predictions

    def _standard_deviation(self, X: ArrayLike) -> Array:
        """Return that of the learned function at each sample, in units of y."""
        if self.__dict__.get("_predicts_only_"):
            raise ValueError(
                "The standard deviation of predictions is not known to a model that was saved with "
                "training=False: the statistics that tell it are left out. Save it with "
                "training=True."
            )
        if not hasattr(type(self), "noise_"):
            raise ValueError(
                f"The standard deviation of predictions is not known to a {type(self).__name__}, "
                f"whose objective is more than a sum over samples: use a POLKRegressor."
            )
        variance = self._evaluate(X, lambda model: model.posterior().variance)
        deviation: Array = np.sqrt(variance[:, None] * self._model.noise) * self._scale_
        return deviation[:, 0] if self._single_ else deviation

    def _measure(self, y: Array) -> Targets:
        return Targets.found_in(y, normalize=self.normalize_y)

    def _targets(self) -> Targets:
        return Targets(self.intercept_, self._scale_, self._single_)

    def _validate_both(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Any, Array]:
        X, y = self._validate(X, y, reset=reset, multi_output=True, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    @property
    def _refits(self) -> bool:
        newton = getattr(self, "solver", "sgd") == "newton"
        return self.refit and (newton or _core_name(self.loss) == "squared")

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        if not self._refits:
            return
        if getattr(self, "solver", "sgd") == "newton":
            finish_fit(self, model, samples)
        else:
            least_squares(model, samples)

    def _output_scale(self) -> Any:
        return self._scale_

    def _affine(self) -> tuple[Any, Any]:
        return self.intercept_, self._scale_

    def _head(self) -> Head:
        return Values(single=self._single_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return Targets.stored(outputs)

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        wrong = super()._foreign_entries(archive)
        classifies = _core.parse_loss(archive["loss"]).is_classification
        return [*wrong, "loss"] if classifies else wrong

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
