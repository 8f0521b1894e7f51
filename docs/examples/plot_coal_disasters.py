"""
Coal-mining disasters, with bands
=================================

British coal mines, 1851 to 1962 (Jarrett, Biometrika 1979): the number of disasters with ten
deaths or more in each year. The rate falls around 1890, and the band says how sure one may be of
that.
"""

import matplotlib.pyplot as plt
import numpy as np

from parsimon import SPPPOTIntensity

counts = (
    "45410434063340263354531441553425223421322111130010110031"
    "03220111010100021000110233112111124200014000100000100101"
)
per_year = np.array([int(digit) for digit in counts])
years = np.arange(1851, 1963)
# Within a year the days are not known here: spread evenly.
events = np.concatenate(
    [year + (np.arange(count) + 0.5) / max(count, 1) for year, count in zip(years, per_year)]
)

model = SPPPOTIntensity(domain=(1851, 1963), random_state=0).fit(events[:, None])
at = np.linspace(1851, 1963, 400)[:, None]
rate, deviation = model.intensity(at, return_std=True)

figure, ax = plt.subplots(figsize=(7, 3.8))
ax.bar(years + 0.5, per_year, color="0.85", width=1, label="disasters in a year")
ax.fill_between(at[:, 0], np.maximum(rate - 2 * deviation, 0), rate + 2 * deviation, alpha=0.35)
ax.plot(at, rate, label="rate, with two standard deviations")
ax.set(xlim=(1851, 1963), ylim=(0, 7))
ax.legend()
plt.show()
