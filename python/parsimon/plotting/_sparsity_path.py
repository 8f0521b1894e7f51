"""Solutions of SLKL along a path of sparsities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._common import PALETTE, three_panels

if TYPE_CHECKING:
    from parsimon.slkl import SparsityPath


class SparsityPathDisplay:
    """Error, number of columns and objective against the sparsity.

    Parameters
    ----------
    path : SparsityPath
        What :func:`parsimon.sparsity_path` returned.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The panels, one above the other: error, model order, objective.
    figure_ : matplotlib Figure
        The figure.
    lines_ : dict of str to matplotlib Line2D
        The curves "error", "model_order" and "objective", and "chosen", the line at least error.

    Examples
    --------
    >>> from parsimon import sparsity_path
    >>> from parsimon.datasets import make_sinc
    >>> display = sparsity_path(*make_sinc(200, random_state=0), n_sparsities=5).plot()
    >>> [axes.get_ylabel() for axes in display.ax_]
    ['mean squared error', 'model order', 'objective']
    """

    def __init__(self, path: SparsityPath) -> None:
        self.path = path

    def plot(self, *, ax: Any = None) -> SparsityPathDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : array-like of three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : SparsityPathDisplay
            Itself.
        """
        self.ax_ = three_panels(ax)
        self.figure_ = self.ax_[0].figure
        path = self.path
        curves = {"error": path.error, "model_order": path.model_order, "objective": path.objective}
        labels = ("mean squared error", "model order", "objective")
        self.lines_ = {}
        for axes, label, (name, values) in zip(self.ax_, labels, curves.items(), strict=True):
            self.lines_[name] = axes.plot(
                path.sparsity, values, color=PALETTE[0], marker="o", markersize=3, linewidth=1.5
            )[0]
            axes.set_xscale("log")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.spines[["top", "right"]].set_visible(False)
        best = path.sparsity[np.argmin(path.error)]
        self.lines_["chosen"] = self.ax_[0].axvline(
            best, color=PALETTE[4], linestyle="--", linewidth=1.5
        )
        self.ax_[0].legend([self.lines_["chosen"]], ["least error"], frameon=False, loc="best")
        self.ax_[-1].set_xlabel("sparsity")
        self.ax_[-1].invert_xaxis()
        return self
