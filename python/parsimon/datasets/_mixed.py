"""A stream of mixed columns, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from parsimon._checks import check_count, is_integer

_CITIES = np.array(["Bern", "Graz", "Lyon", "Riga", "Turin", "Vigo"])
_NEW_CITY = "Zadar"
_VEHICLES = np.array(["bike", "van", "truck"])


def make_deliveries(
    n_samples: int = 200_000, *, change_at: int | None = None, random_state: Any = None
) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """Draw a stream of deliveries that are late or on time: numbers, text, gaps, maybe a change.

    Whether a delivery is late depends on how far it goes at what time of the day with which
    vehicle, and by a different rule in each city. Some weights are missing, and a seventh city
    appears after three fifths of the stream.

    Parameters
    ----------
    n_samples : int, default=200000
        Number of deliveries.
    change_at : int, optional
        The delivery from which on the rush hour is six hours later. By default it never is.
    random_state : int, RandomState instance or None, default=None
        Seed of everything.

    Returns
    -------
    columns : dict of str to ndarray
        "distance" in km, "weight" in kg (some are NaN), "items", "hour", "city" and "vehicle".
    y : ndarray of str
        "late" or "on time".

    Examples
    --------
    >>> from parsimon.datasets import make_deliveries
    >>> columns, y = make_deliveries(1000, random_state=0)
    >>> list(columns), sorted(set(y.tolist()))
    (['distance', 'weight', 'items', 'hour', 'city', 'vehicle'], ['late', 'on time'])
    """
    check_count("n_samples", n_samples)
    if change_at is not None and not (is_integer(change_at) and change_at >= 0):
        raise ValueError(f"change_at must be an integer of at least 0, or None; got {change_at!r}.")
    random = check_random_state(random_state)
    number = np.arange(n_samples)
    distance = random.lognormal(1.5, 0.6, n_samples)
    weight = random.gamma(2.0, 6.0, n_samples)
    items = 1 + random.poisson(2.0, n_samples)
    hour = random.uniform(0, 24, n_samples)
    city = random.randint(len(_CITIES), size=n_samples)
    vehicle = random.randint(len(_VEHICLES), size=n_samples)
    is_new = (number >= 0.6 * n_samples) & (random.uniform(size=n_samples) < 0.1)

    rush = np.where(number >= (n_samples if change_at is None else change_at), 23.0, 17.0)
    from_rush = (hour - rush + 12) % 24 - 12  # midnight is between 23 and 1
    jam = np.exp(-((from_rush / 3.0) ** 2))
    slow = np.array([1.0, 0.5, 0.8])[vehicle]
    stops = 0.15 * items + 0.02 * weight * (vehicle == 0)
    street = np.where(is_new, 1.6, np.array([0.6, 0.8, 1.0, 1.2, 1.4, 1.1])[city])
    minutes = distance * street * (slow + 1.5 * jam * (vehicle != 0)) + stops
    late = minutes + random.normal(0, 0.4, n_samples) > 4.5

    columns = {
        "distance": distance.round(3),
        "weight": np.where(random.uniform(size=n_samples) < 0.02, np.nan, weight.round(2)),
        "items": items,
        "hour": hour.round(2),
        "city": np.where(is_new, _NEW_CITY, _CITIES[city]),
        "vehicle": _VEHICLES[vehicle],
    }
    return columns, np.where(late, "late", "on time")
