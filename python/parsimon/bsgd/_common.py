"""What the BSGD estimators share: a bound on the number of points instead of one on the error."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from parsimon._checks import check_count, check_number
from parsimon.polk import POLK

MAINTENANCE = ("remove", "project", "merge", "nonparametric")


class BudgetMaintenance(POLK):
    """An estimator of POLK whose model is held to a number of points."""

    maintenance: str
    maintenance_rate: float

    _caps_points = True
    # What bounds the error in POLK is not there.
    parsimony = "auto"
    max_model_order = None

    def _check_compression(self) -> None:
        check_count("budget", self.budget)
        if self.maintenance not in MAINTENANCE:
            raise ValueError(
                f"maintenance must be one of {', '.join(map(repr, MAINTENANCE))}; got "
                f"{self.maintenance!r}."
            )
        if self.maintenance == "merge" and self.budget == 1:
            raise ValueError("budget must be at least 2 with maintenance='merge'; got 1.")
        check_number("maintenance_rate", self.maintenance_rate, positive=False)

    def _maintenance(self) -> tuple[str, list[float]]:
        seed = 0
        if self.maintenance == "nonparametric":
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        numbers: list[Any] = [self.budget, self.maintenance_rate, seed, 0]
        return self.maintenance, [float(number) for number in numbers]
