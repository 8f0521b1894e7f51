"""What the BSGD estimators share: a bound on the number of points instead of one on the error."""

from __future__ import annotations

from sklearn.utils import check_random_state

from parsimon._checks import check_count, check_number
from parsimon._settings import Schedule, core_maintenance
from parsimon.polk import POLK

MAINTENANCE = ("remove", "project", "merge", "nonparametric")


class BudgetMaintenance(POLK):
    """An estimator of POLK whose model is held to a number of points."""

    max_points: int
    maintenance: str
    maintenance_rate: float

    _caps_points = True
    # What bounds the error in POLK is not there.
    parsimony = "auto"
    budget = None

    def _check_compression(self) -> None:
        check_count("max_points", self.max_points)
        if self.maintenance not in MAINTENANCE:
            raise ValueError(
                f"maintenance must be one of {', '.join(map(repr, MAINTENANCE))}; got "
                f"{self.maintenance!r}."
            )
        if self.maintenance == "merge" and self.max_points == 1:
            raise ValueError("max_points must be at least 2 with maintenance='merge'; got 1.")
        check_number("maintenance_rate", self.maintenance_rate, positive=False)

    def _maintenance(self) -> Schedule:
        seed = 0
        if self.maintenance == "nonparametric":
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return core_maintenance(self.maintenance, self.max_points, self.maintenance_rate, seed)
