"""What an untrained model of the paper's algorithms is made of."""

from __future__ import annotations

from dataclasses import dataclass

from parsimon import _core
from parsimon._lazy import lazy
from parsimon._model import Array
from parsimon.kernels import Kernel

from . import _auto


@dataclass(frozen=True)
class Setting:
    """Everything that an untrained core model is made of, except its algorithm."""

    kernel: Kernel
    domain: Array
    quadrature: _core.Quadrature
    X: Array
    epochs: int
    streaming: bool

    @lazy
    def largest_self(self) -> float:
        """Return the largest k(x, x) on the data."""
        return float(self.kernel.diag(self.X).max()) or 1.0

    @lazy
    def curvature(self) -> _auto.Curvature:
        """How steep the likelihood can be with these data, nodes and kernel."""
        return _auto.curvature(self.kernel, self.X, self.quadrature.nodes(self.box))

    @property
    def box(self) -> _core.Box:
        """The domain, as the core takes it."""
        return _core.Box(*self.domain.T.tolist())
