"""Progress bars: tqdm's if it is installed, silence if it is not."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ._checks import warn

# Seconds between two drawings of a bar that counts nothing.
_REDRAW = 0.1

_hint_given = False


class ProgressBar:
    """A bar of tqdm's, or none, which shows nothing."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar
        self._shown = 0.0

    def update(self, samples: int) -> None:
        """Count further samples."""
        if self._bar is not None:
            self._bar.update(samples)

    def set_postfix(self, **values: float) -> None:
        """Show values beside the bar, from the next redraw on."""
        if self._bar is not None:
            # Redrawing is left to update, which tqdm limits to ten times a second.
            self._bar.set_postfix(values, refresh=False)

    def show(self, **values: float) -> None:
        """Show values now, while no samples are counted; often enough to see that work goes on."""
        if self._bar is None:
            return
        self._bar.set_postfix(values, refresh=False)
        now = monotonic()
        if now - self._shown >= _REDRAW:
            self._shown = now
            self._bar.refresh()

    def describe(self, description: str) -> None:
        """Say what is going on now."""
        if self._bar is not None:
            self._bar.set_description(description)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        # Leaves the terminal as it should be, whatever ended the work.
        if self._bar is not None:
            self._bar.close()


def progress(
    total: int | None,
    *,
    enabled: bool = True,
    description: str | None = None,
    unit: str = " samples",
) -> ProgressBar:
    """Open a progress bar.

    Parameters
    ----------
    total : int or None
        Samples to come; None if nobody knows.
    enabled : bool, default=True
        Whether to show anything.
    description : str, optional
        What is going on.
    unit : str, default=" samples"
        What is counted.

    Returns
    -------
    bar : ProgressBar
        To be used in a ``with`` statement.

    Examples
    --------
    >>> from parsimon._progress import progress
    >>> with progress(100, enabled=False, description="POLK") as bar:
    ...     for block in range(10):
    ...         bar.update(10)
    ...         bar.set_postfix(model_order=block)
    """
    if not enabled:
        return ProgressBar()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        _give_hint()
        return ProgressBar()
    return ProgressBar(tqdm(total=total, desc=description, unit=unit, unit_scale=True))


def _give_hint() -> None:
    global _hint_given  # noqa: PLW0603 - once per process is enough
    if not _hint_given:
        _hint_given = True
        warn(
            "Progress bars need tqdm, which is not installed; work goes on without them. "
            "To see them: pip install 'parsimon[progress]'."
        )
